import type { Dialect, Statement } from '../dialect.ts';
import type { JournalStep } from './history-table.ts';

export interface CompiledStatement {
  /** Index of its operation, in the order in which they run. */
  readonly operation: number;
  /** How many operations from that one it makes; absent for one. */
  readonly merged?: number;
  readonly statement: Statement;
}

/** Merges the statement of the operation at `at` into the last one, which creates its table. False if it stays apart. */
export function mergeWithLast(
  merge: NonNullable<Dialect['mergeIntoCreation']>,
  compiled: CompiledStatement[],
  at: number,
  [addition, ...more]: readonly Statement[],
): boolean {
  const last = compiled.at(-1);
  const { operation = -1, merged = 1 } = last ?? {};
  if (!last || !addition || more.length > 0 || operation + merged !== at) return false;
  const statement = merge(last.statement, addition);
  if (statement) compiled.splice(-1, 1, { operation, merged: merged + 1, statement });
  return statement !== undefined;
}

/** Adjacent transactional statements form one step; every other statement is a step of its own. */
export function groupIntoSteps(compiled: readonly CompiledStatement[]): JournalStep[] {
  const steps: { operation: number; merged?: number; transactional: boolean; statements: Statement[] }[] = [];
  for (const { statement, ...operations } of compiled) {
    const { transactional } = statement;
    const last = steps.at(-1);
    if (last?.transactional && transactional) last.statements.push(statement);
    else steps.push({ ...operations, transactional, statements: [statement] });
  }
  return steps;
}
