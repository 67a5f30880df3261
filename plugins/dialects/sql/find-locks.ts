import { LARGE_ROWS, type Statement, type StatementLock } from '../../../core/dialect.ts';
import { isObjectOperation } from '../../../core/schema/database-object.ts';
import type { MigrationOperation } from '../../../core/schema/operation.ts';
import { PresentNames } from './present-names.ts';

/** What a statement does to those who use its table, and with its rows. */
export type LockEffect = Pick<StatementLock, 'blocks' | 'work'>;

/** It needs the table alone, and changes only the catalog. */
export const MOMENT: LockEffect = { blocks: 'reads and writes', work: 'none' };

const ROWS_PER_SECOND = { none: Infinity, read: 1_000_000, write: 100_000 };

/** What the statements do to those who use tables with many rows. `rowsOf` estimates those of a table before the run. */
export async function findLocks<Step>(
  rowsOf: (table: string) => Promise<number>,
  effectOf: (statement: Statement<Step>, index: number) => LockEffect,
  statements: readonly Statement<Step>[],
  operations: readonly MigrationOperation[],
): Promise<readonly StatementLock[]> {
  const names = new PresentNames();
  const counted = new Map<string, number>();
  const locks: StatementLock[] = [];
  for (const [index, statement] of statements.entries()) {
    const operation = operations[index];
    if (!operation || operation.type === 'raw' || isObjectOperation(operation)) continue;
    const table = 'collection' in operation ? names.table(operation.collection)?.name : undefined;
    if (operation !== operations[index + 1]) names.follow(operation);
    if (table === undefined) continue;
    const rows = counted.get(table) ?? (await rowsOf(table));
    counted.set(table, rows);
    if (rows <= LARGE_ROWS) continue;
    const effect = effectOf(statement, index);
    const seconds = Math.ceil(rows / ROWS_PER_SECOND[effect.work]);
    locks.push({ statement: index, collection: table, ...effect, rows, seconds });
  }
  return locks;
}
