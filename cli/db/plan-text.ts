import type { Connection, Dialect } from '../../core/dialect.ts';
import { describeError, errorMessage, isSvcError } from '../../core/errors.ts';
import { type Keep, lossesNotKept } from '../../core/migration/kept.ts';
import type { Migration, Permission } from '../../core/migration/migration.ts';
import {
  durationText,
  lockText,
  type PreviewedStatement,
  rowsOfCopy,
  rowsOfLoss,
} from '../../core/migration/preview-statements.ts';
import { escapeControls } from '../output.ts';

export interface PlannedMigrationText {
  readonly migration: Migration;
  readonly statements: readonly PreviewedStatement[];
  /** Default: up. */
  readonly direction?: 'up' | 'down';
  /** What the linter finds, a line each. */
  readonly lint?: readonly string[];
  readonly keeps?: readonly Keep[];
  /** Of a rollback: what does not come back, because it was purged. */
  readonly purged?: readonly string[];
  /** The rest of a run that was interrupted, which the next run finishes. */
  readonly isInterrupted?: boolean;
}

/** Of a dialect: how its shell reads a statement. */
type Shell = Pick<Dialect, 'scriptStatement'>;

/**
 * A plan as a script for the engine's shell. Comments mark data loss, table copies and certain failures, and the first ones
 * summarize what needs permission. Escapes control characters only on a terminal.
 */
export function planText(
  label: string,
  steps: readonly (PlannedMigrationText & { readonly dialect: Shell })[],
  stdout: object,
  preamble: readonly string[] = [],
): string {
  const lines = [`-- ${label}`, ...permissionLines(steps)];
  if (steps.length > 0) lines.push(...preamble.map(withSemicolon));
  for (const step of steps) {
    const { migration, statements, dialect, direction = 'up', lint = [], purged = [], isInterrupted = false } = step;
    lines.push('', `-- ${migration.tag}`);
    if (isInterrupted)
      lines.push(`-- the rest of ${direction === 'up' ? 'its steps' : 'its rollback'}, which was interrupted`);
    for (const line of lint) lines.push(`-- lint ${oneLineComment(line)}`);
    for (const sentence of purged) lines.push(`-- purged: ${oneLineComment(sentence)}`);
    if (direction === 'up') for (const loss of lossesNotKept(step)) lines.push(`-- lossy: ${oneLineComment(loss)}`);
    if (migration.irreversible !== undefined)
      lines.push(`-- irreversible${onDialects(migration)}: ${oneLineComment(migration.irreversible)}`);
    for (const statement of statements) {
      if (statement.destructive)
        lines.push(`-- destroys data${statement.loss ? `: ${lossText(statement.loss)}` : ', not known how much'}:`);
      if (statement.keptMs !== undefined)
        lines.push(
          `-- keeps it for ${durationText(statement.keptMs)}${statement.loss ? `: ${lossText(statement.loss)}` : ''}:`,
        );
      if (statement.copy) lines.push(`-- copies ${copyText(statement.copy)}, which blocks writes to it:`);
      if (statement.failure !== undefined)
        lines.push(`-- will fail: ${oneLineComment(failureText(statement.failure))}`);
      if (statement.lock) lines.push(`-- ${lockText(statement.lock)}:`);
      if (!statement.transactional) lines.push('-- not in a transaction:');
      lines.push(scriptStatement(statement.text, dialect));
    }
  }
  return scriptText(lines, stdout);
}

/** Escapes control characters only on a terminal. */
export function scriptText(lines: readonly string[], stdout: object): string {
  const text = lines.join('\n');
  return 'isTTY' in stdout && stdout.isTTY ? escapeControls(text) : text;
}

const onDialects = ({ irreversibleOn }: Migration): string =>
  irreversibleOn ? ` on ${irreversibleOn.join(', ')}` : '';

/** The tables, with their rows, that the run may only copy or empty with permission: all of them at once. */
function permissionLines(steps: readonly PlannedMigrationText[]): string[] {
  const { copies, losses } = neededPermissions(steps);
  const line = (what: string, tables: readonly string[], flag: string, permission: Permission): string[] =>
    tables.length === 0
      ? []
      : [
          `-- ${what}: ${[...new Set(tables)].join(', ')}`,
          `--   needs --${flag}, or "allow": ["${permission}"] in the migration`,
        ];
  return [
    ...line('copies tables, which blocks writes to them', copies.map(copyText), 'allow-copy', 'copy'),
    ...line('destroys data', losses.map(lossText), 'allow-destructive', 'destructive'),
  ];
}

interface NeededPermissions {
  readonly copies: readonly NonNullable<PreviewedStatement['copy']>[];
  /** Undefined: what it destroys is not known. */
  readonly losses: readonly PreviewedStatement['loss'][];
}

function neededPermissions(steps: readonly PlannedMigrationText[]): NeededPermissions {
  const up = steps.filter(({ direction = 'up', isInterrupted }) => direction === 'up' && !isInterrupted);
  return {
    copies: steps.flatMap(({ statements }) =>
      statements.flatMap(({ copy }) => (copy && !copy.isPermitted ? [copy] : [])),
    ),
    losses: up.flatMap(({ migration, statements }) =>
      migration.allow?.includes('destructive')
        ? []
        : statements.flatMap(({ destructive, loss }) => (destructive ? [loss] : [])),
    ),
  };
}

/** `"orders" (about 3,000,000 rows)` */
const copyText = (copy: NonNullable<PreviewedStatement['copy']>): string =>
  `"${copy.collection}" (${rowsOfCopy(copy)})`;

const lossText = (loss: PreviewedStatement['loss']): string =>
  loss ? `"${loss.collection}" (${rowsOfLoss(loss)})` : 'unknown rows';

const failureText = (failure: unknown): string =>
  isSvcError(failure) ? `${failure.code}: ${describeError(failure)}` : errorMessage(failure);

export function oneLineComment(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, ' ');
}

/** A statement with its end, as the shell of the engine reads it. */
export const scriptStatement = (text: string, dialect: Shell): string =>
  dialect.scriptStatement?.(text) ?? withSemicolon(text);

/** If the last line may end in a comment, which may end in a semicolon, the semicolon is on its own line. */
export function withSemicolon(text: string): string {
  const trimmed = text.trimEnd();
  if (/--|#|\/\//.test(trimmed.slice(trimmed.lastIndexOf('\n') + 1))) return `${trimmed}\n;`;
  return trimmed.endsWith(';') ? trimmed : `${trimmed};`;
}

/** The statements to run before a plan in the engine's shell, for `--json`. */
export function preambleData({ preamble }: Pick<Connection, 'preamble'>): { preamble?: readonly string[] } {
  return preamble ? { preamble } : {};
}

/** A plan, for `--json`. */
export function planData(steps: readonly PlannedMigrationText[]): object[] {
  return steps.map(({ migration, statements, keeps, lint, isInterrupted }) => ({
    tag: migration.tag,
    ...(isInterrupted && { interrupted: true }),
    ...(lint && { lint }),
    ...(migration.lossy && { lossy: lossesNotKept({ migration, ...(keeps && { keeps }) }) }),
    ...(migration.irreversible !== undefined && { irreversible: migration.irreversible }),
    ...(migration.irreversibleOn && { irreversibleOn: migration.irreversibleOn }),
    ...(migration.allow && { allow: migration.allow }),
    statements: statements.map(({ text, transactional, destructive, keptMs, copy, loss, lock, failure }) => ({
      text,
      transactional,
      destructive,
      ...(loss && {
        [keptMs === undefined ? 'loses' : 'keeps']: {
          table: loss.collection,
          rows: loss.rows,
          ...(loss.hasMore && { atLeast: true }),
          ...(loss.values !== undefined && { values: loss.values }),
          ...(keptMs !== undefined && { hours: keptMs / 3_600_000 }),
        },
      }),
      ...(copy && {
        copies: {
          table: copy.collection,
          rows: copy.rows,
          ...(copy.isEstimate && { estimate: true }),
          permitted: copy.isPermitted,
        },
      }),
      ...(lock && { lock: lockData(lock) }),
      ...(failure !== undefined && {
        fails: isSvcError(failure)
          ? { code: failure.code, message: failure.message, why: failure.why }
          : { message: errorMessage(failure) },
      }),
    })),
  }));
}

const lockData = ({ collection: table, blocks, work, rows, seconds }: NonNullable<PreviewedStatement['lock']>) => ({
  table,
  blocks,
  work,
  rows,
  seconds,
});

/** What a run of the plan needs permission for, for `--json`. */
export function neededPermissionData(steps: readonly PlannedMigrationText[]): { needs: readonly Permission[] } {
  const { copies, losses } = neededPermissions(steps);
  return {
    needs: [...(copies.length > 0 ? ['copy' as const] : []), ...(losses.length > 0 ? ['destructive' as const] : [])],
  };
}
