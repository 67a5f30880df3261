import type { Connection, Statement } from '../../core/dialect.ts';
import type { Migration } from '../../core/migration/migration.ts';
import { visible } from '../print.ts';

export interface Step {
  readonly migration: Migration;
  readonly statements: readonly Statement[];
  /** Default up. */
  readonly direction?: 'up' | 'down';
}

/**
 * A plan as text for the engine's own shell: what destroys data, and what a migration loses, stands in comments. A
 * terminal is shown control characters and does not obey them; a pipe gets every character as it is.
 */
export function planText(
  label: string,
  steps: readonly Step[],
  stdout: object,
  preamble: readonly string[] = [],
): string {
  const lines = [`-- ${label}`];
  if (steps.length > 0) lines.push(...preamble.map(terminated));
  for (const { migration, statements, direction = 'up' } of steps) {
    lines.push('', `-- ${migration.tag}`);
    if (direction === 'up') for (const loss of migration.lossy ?? []) lines.push(`-- lossy: ${comment(loss)}`);
    if (migration.irreversible !== undefined) lines.push(`-- irreversible: ${comment(migration.irreversible)}`);
    for (const statement of statements) {
      if (statement.destructive) lines.push('-- destroys data:');
      if (!statement.transactional) lines.push('-- not in a transaction:');
      lines.push(terminated(statement.text));
    }
  }
  const text = lines.join('\n');
  return 'isTTY' in stdout && stdout.isTTY ? visible(text) : text;
}

function comment(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, ' ');
}

/** A last line may be a comment, which would swallow the semicolon. */
function terminated(text: string): string {
  const trimmed = text.trimEnd();
  if (trimmed.endsWith(';')) return trimmed;
  return trimmed.slice(trimmed.lastIndexOf('\n') + 1).includes('--') ? `${trimmed}\n;` : `${trimmed};`;
}

/** What goes before a plan in the engine's own shell, as `--json` gives it. */
export function preambleData({ preamble }: Pick<Connection, 'preamble'>): { preamble?: readonly string[] } {
  return preamble ? { preamble } : {};
}

/** A plan as `--json` gives it. */
export function planData(steps: readonly Step[]): object[] {
  return steps.map(({ migration, statements }) => ({
    tag: migration.tag,
    ...(migration.lossy && { lossy: migration.lossy }),
    ...(migration.irreversible !== undefined && { irreversible: migration.irreversible }),
    statements: statements.map(({ text, transactional, destructive }) => ({ text, transactional, destructive })),
  }));
}
