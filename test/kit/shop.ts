import * as assert from 'node:assert/strict';
import type { Ran } from './cli.ts';

/** The command ended with that status. */
export function ok(ran: Ran, status = 0): Ran {
  assert.equal(ran.status, status, `${ran.stdout}\n${ran.stderr}`);
  return ran;
}

// biome-ignore lint/suspicious/noExplicitAny: whatever the command printed
export const json = (ran: Ran): any => JSON.parse(ran.stdout);

/** The tag of a migration file. */
export const tagOf = (file: string | undefined): string =>
  (file ?? '')
    .split('/')
    .at(-1)
    ?.replace(/\.\w+$/, '') ?? '';

/** Commands take a second each, more when the machine is busy. */
export const LONG = { timeoutMs: 120_000 };

export const id = { type: 'Integer', primaryKey: true, autoGenerate: true };
export const users = { users: { id, email: { type: 'String', required: true, unique: true } } };
export const withAge = { users: { ...users.users, age: 'Integer' } };
