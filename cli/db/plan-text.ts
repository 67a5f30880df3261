import type { Connection, Statement } from '../../core/dialect.ts';
import type { Migration } from '../../core/migration/migration.ts';
import { escapeControls } from '../output.ts';

export interface PlannedMigrationText {
  readonly migration: Migration;
  readonly statements: readonly Statement[];
  /** Default: up. */
  readonly direction?: 'up' | 'down';
}

/**
 * A plan as a script for the engine's shell, with data loss marked in comments. Escapes control characters only on a
 * terminal.
 */
export function planText(
  label: string,
  steps: readonly PlannedMigrationText[],
  stdout: object,
  preamble: readonly string[] = [],
): string {
  const lines = [`-- ${label}`];
  if (steps.length > 0) lines.push(...preamble.map(withSemicolon));
  for (const { migration, statements, direction = 'up' } of steps) {
    lines.push('', `-- ${migration.tag}`);
    if (direction === 'up') for (const loss of migration.lossy ?? []) lines.push(`-- lossy: ${oneLineComment(loss)}`);
    if (migration.irreversible !== undefined) lines.push(`-- irreversible: ${oneLineComment(migration.irreversible)}`);
    for (const statement of statements) {
      if (statement.destructive) lines.push('-- destroys data:');
      if (!statement.transactional) lines.push('-- not in a transaction:');
      lines.push(withSemicolon(statement.text));
    }
  }
  const text = lines.join('\n');
  return 'isTTY' in stdout && stdout.isTTY ? escapeControls(text) : text;
}

function oneLineComment(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, ' ');
}

/** If the last line ends in a comment, the semicolon is on its own line. */
function withSemicolon(text: string): string {
  const trimmed = text.trimEnd();
  if (trimmed.endsWith(';')) return trimmed;
  return trimmed.slice(trimmed.lastIndexOf('\n') + 1).includes('--') ? `${trimmed}\n;` : `${trimmed};`;
}

/** The statements to run before a plan in the engine's shell, for `--json`. */
export function preambleData({ preamble }: Pick<Connection, 'preamble'>): { preamble?: readonly string[] } {
  return preamble ? { preamble } : {};
}

/** A plan, for `--json`. */
export function planData(steps: readonly PlannedMigrationText[]): object[] {
  return steps.map(({ migration, statements }) => ({
    tag: migration.tag,
    ...(migration.lossy && { lossy: migration.lossy }),
    ...(migration.irreversible !== undefined && { irreversible: migration.irreversible }),
    statements: statements.map(({ text, transactional, destructive }) => ({ text, transactional, destructive })),
  }));
}
