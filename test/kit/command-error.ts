import * as assert from 'node:assert/strict';
import type { CommandResult } from './cli.ts';

export interface CommandError {
  readonly code: string;
  readonly message: string;
  readonly why: string | null;
  readonly state: string;
  readonly nextActions: readonly string[];
  readonly where: string | null;
}

/** Asserts that a command failed with an error that has all parts, and returns its text from stderr. */
export function errorText(ran: CommandResult, status: number, code: string): string {
  const output = `${ran.stdout}\n${ran.stderr}`;
  assert.equal(ran.status, status, output);
  const lines = ran.stderr.trimEnd().split('\n');
  const first = lines.findIndex((line) => line.startsWith('error '));
  assert.ok(first >= 0, `no error in ${output}`);
  const errorLines = lines.slice(first);
  assert.ok(errorLines[0]?.endsWith(`(${code})`), output);
  // Next steps are indented, one per line.
  assert.ok(errorLines.filter((line) => !line.startsWith('        ')).length <= 5, output);
  // `why` is optional.
  for (const label of ['state', 'next']) {
    assert.ok(
      errorLines.some((line) => line.startsWith(`  ${label}`)),
      `no "${label}" in ${output}`,
    );
  }
  return errorLines.join('\n');
}

/** Asserts the same of the output of `--json`, and returns the error. */
export function errorJson(ran: CommandResult, status: number, code: string): CommandError {
  assert.equal(ran.status, status, `${ran.stdout}\n${ran.stderr}`);
  const { ok, ...refusal } = JSON.parse(ran.stdout);
  assert.equal(ok, false);
  assert.equal(refusal.code, code, ran.stdout);
  assert.ok(refusal.message && refusal.state && refusal.nextActions.length > 0, ran.stdout);
  return refusal;
}
