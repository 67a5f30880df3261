import * as assert from 'node:assert/strict';
import { Ajv, type ValidateFunction } from 'ajv';
import { table } from '../../cli/command-list.ts';
import { findCommand } from '../../cli/routing.ts';
import { outputSchema } from '../../docs/output-schemas.ts';

/** The commands that print one object per line. */
const PRINTING_LINES = /^approvals (watch|serve|export)$/;

const ajv = new Ajv({ allErrors: true, formats: { 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/ } });
const compiled = new Map<string, ValidateFunction>();

/** Asserts that the output of `svc … --json` matches the documented schema of its command. */
export function assertDocumentedOutput(args: readonly string[], stdout: string): void {
  const command = commandOf(args);
  if (!command || stdout === '') return;
  const isLines = PRINTING_LINES.test(command) && !stdout.startsWith('{\n');
  const values = (isLines ? stdout.trimEnd().split('\n') : [stdout]).map((text) => JSON.parse(text));
  const validate = compiled.get(command) ?? ajv.compile(outputSchema(command) ?? assert.fail(`svc ${command}`));
  compiled.set(command, validate);
  for (const value of values) {
    if (validate(value)) continue;
    const problems = validate.errors?.map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
    const what = `docs/output-schemas.ts does not describe what svc ${args.join(' ')} printed`;
    assert.fail(`${what}:\n${JSON.stringify(value, null, 2)}\n${problems?.join('\n')}`);
  }
}

/** Undefined for a command that does not exist or is the test's own. */
function commandOf(args: readonly string[]): string | undefined {
  if (args.includes('--version') || args.includes('-v')) return args.length <= 2 ? '--version' : undefined;
  const { entry } = findCommand(args);
  if (entry) return table.includes(entry) ? entry.path : undefined;
  return '--help';
}
