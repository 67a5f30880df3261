import * as assert from 'node:assert/strict';
import type { Ran } from './cli.ts';

export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly why: string | null;
  readonly state: string;
  readonly nextActions: readonly string[];
  readonly where: string | null;
}

/** What a refused command said on stderr: its code, and in a line each what, why, what state was left, and what next. */
export function refusedText(ran: Ran, status: number, code: string): string {
  const all = `${ran.stdout}\n${ran.stderr}`;
  assert.equal(ran.status, status, all);
  const lines = ran.stderr.trimEnd().split('\n');
  const first = lines.findIndex((line) => line.startsWith('error '));
  assert.ok(first >= 0, `no refusal in ${all}`);
  const told = lines.slice(first);
  assert.ok(told[0]?.endsWith(`(${code})`), all);
  // Of the next steps each has a line.
  assert.ok(told.filter((line) => !line.startsWith('        ')).length <= 5, all);
  // The first line says what; only where that is not reason enough another one says why.
  for (const label of ['state', 'next']) {
    assert.ok(
      told.some((line) => line.startsWith(`  ${label}`)),
      `no "${label}" in ${all}`,
    );
  }
  return told.join('\n');
}

/** The same refusal as `--json` gives it. */
export function refusedJson(ran: Ran, status: number, code: string): Refusal {
  assert.equal(ran.status, status, `${ran.stdout}\n${ran.stderr}`);
  const { ok, ...refusal } = JSON.parse(ran.stdout);
  assert.equal(ok, false);
  assert.equal(refusal.code, code, ran.stdout);
  assert.ok(refusal.message && refusal.state && refusal.nextActions.length > 0, ran.stdout);
  return refusal;
}
