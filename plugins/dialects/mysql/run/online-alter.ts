import type { Progress } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { copyRequiredError } from '../../sql/copy-required.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { hasZeroDate } from '../catalog/defaults.ts';
import { readTable } from '../catalog/read-catalog.ts';
import { quoteIdentifier, quoteLiteral } from '../compile/literal.ts';
import {
  type AlterClause,
  type AlterTable,
  alterSql,
  type CreateTable,
  createTableSql,
  dropTableSql,
  isDescendingIndex,
  type PlainClause,
  type StatementPlan,
} from '../compile/step.ts';
import { errorNumber } from '../connection/errors.ts';
import { assertEnumConvertible, assertNoRows } from '../data/conversion-checks.ts';
import { runFill } from '../data/fill.ts';
import { isBefore, type Traits, type Version } from '../variant.ts';
import { completeClauses, followUpClauses, needsCatalog } from './complete-alter.ts';
import { copySize } from './table-copy.ts';

export interface AlterContext {
  readonly exec: ExecSql;
  readonly traits: Traits;
  readonly version: Version;
  readonly database: string;
  /** Whether a statement may copy a table of any size, which blocks writes to it. */
  readonly allowCopy: boolean;
  /** A table with at most this many rows is copied without permission. */
  readonly copyRows: number;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** The server does not distinguish tables by the case of their names. */
  readonly foldsTableNames: boolean;
}

/**
 * The SQL of a statement in its most likely form; undefined if it depends on the catalog. If the
 * server cannot run it in that form, it fails with one of `NEEDS_CATALOG`.
 */
export function immediateSql(
  server: Pick<AlterContext, 'traits' | 'version'>,
  tableOptions: string,
  plan: StatementPlan,
): string | undefined {
  switch (plan.kind) {
    case 'createTable':
      if (hasUnsupportedOrder(server, plan)) return undefined;
      return plan.hasCollation ? createTableSql(plan) : createTableSql(plan) + tableOptions;
    case 'dropTable':
      return dropTableSql(plan.table);
    case 'fillColumn':
    case 'checkRows':
      return undefined;
    case 'alterTable':
      return immediateAlterSql(server, plan);
  }
}

function immediateAlterSql(server: Pick<AlterContext, 'traits' | 'version'>, alter: AlterTable): string | undefined {
  const { traits } = server;
  if (needsCatalog(traits, alter) || alter.rejectRows || alter.convertEnum) return undefined;
  if (alter.clauses.some(requiresCopy) || hasUnsupportedOrder(server, alter)) return undefined;
  // Only the kinds that `needsCatalog` lists are not plain.
  const clauses = alter.clauses as readonly PlainClause[];
  const isInstant = clauses.every(({ kind }) => kind !== 'addConstraint' && kind !== 'addIndex');
  return `${alterSql(traits, alter.table, clauses)}, ${isInstant ? INSTANT : ONLINE}`;
}

/** Every server copies the table to add these. */
export const requiresCopy = (clause: AlterClause): boolean =>
  clause.kind === 'addConstraint' && (clause.type === 'foreignKey' || clause.type === 'check');

/** Both allow reads and writes; the second blocks them briefly at its beginning and end. */
const INSTANT = 'ALGORITHM=INSTANT';
const ONLINE = 'ALGORITHM=INPLACE, LOCK=NONE';

/** Runs a statement that only the catalog can complete, without blocking other sessions if possible. */
export async function runDeferred(
  context: AlterContext,
  plan: StatementPlan,
  onSent: (sql: string) => void,
): Promise<void> {
  if (plan.kind === 'checkRows') await assertNoRows(context.exec, plan.table, plan);
  else if (plan.kind === 'fillColumn') await runFill(context.exec, context.traits, plan, context.onProgress);
  else if (plan.kind === 'alterTable') await alter(context, plan, onSent);
  else if (plan.kind === 'createTable') throw unsupportedOrderError(context, plan);
  else throw new Error(`${plan.kind} needs nothing from the catalog`);
}

async function alter(context: AlterContext, plan: AlterTable, onSent: (sql: string) => void): Promise<void> {
  const { exec, traits } = context;
  const { table, rejectRows, convertEnum } = plan;
  assertServerSupports(context, plan);
  if (convertEnum) await assertEnumConvertible(exec, table, convertEnum);
  const clauses = await completeClauses(exec, traits, plan);
  const [sql, ...followUps] = completeSql(traits, table, clauses);
  onSent([sql, ...followUps].join('; '));
  const autoIncrements = plan.clauses.some((clause) => clause.kind === 'modifyColumn' && clause.autoIncrement);
  const run = () => alterTable(context, plan, sql);
  const change = autoIncrements ? () => allowingZeroIds(exec, run) : run;
  await allowingZeroDates(context, table, async () => {
    if (!rejectRows) return change();
    if (rejectRows.online && (await tryOnline(exec, sql))) return;
    await withTableLocked(exec, table, async () => {
      await assertNoRows(exec, table, rejectRows);
      await change();
    });
  });
  for (const followUp of followUps) await exec(followUp);
}

/** The statement of completed clauses, and those that have to follow it. */
export function completeSql(
  traits: Traits,
  table: string,
  clauses: readonly PlainClause[],
): readonly [string, ...string[]] {
  return [
    alterSql(traits, table, clauses),
    ...followUpClauses(clauses).map((clause) => alterSql(traits, table, [clause])),
  ];
}

/** Otherwise the server replaces a 0 in an existing row by a new number. */
const allowingZeroIds = (exec: ExecSql, work: () => Promise<void>): Promise<void> =>
  withSqlMode(exec, "CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')", work);

/** Strict sessions reject any change of a table with a default of the date zero. */
export async function allowingZeroDates<T>(
  { exec, traits }: AlterContext,
  table: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (errorNumber(error) !== INVALID_DEFAULT) throw error;
    const { columns } = await readTable(exec, traits, table);
    const hasZero = columns.some(hasZeroDate);
    if (!hasZero) throw error;
    return withSqlMode(exec, "REPLACE(REPLACE(@@sql_mode, 'NO_ZERO_IN_DATE', ''), 'NO_ZERO_DATE', '')", work);
  }
}

async function withSqlMode<T>(exec: ExecSql, mode: string, work: () => Promise<T>): Promise<T> {
  const [row] = await rowsOf(exec, 'SELECT @@sql_mode AS mode');
  await exec(`SET SESSION sql_mode = ${mode}`);
  try {
    return await work();
  } finally {
    await exec(`SET SESSION sql_mode = ${quoteLiteral(String(row?.mode))}`);
  }
}

const INVALID_DEFAULT = 1067;

/** An older server accepts a descending index and ignores its order. */
function hasUnsupportedOrder(
  { traits: { descendingIndexesSince }, version }: Pick<AlterContext, 'traits' | 'version'>,
  plan: AlterTable | CreateTable,
): boolean {
  if (!descendingIndexesSince || !isBefore(version, descendingIndexesSince)) return false;
  return plan.kind === 'createTable' ? plan.hasDescendingIndex === true : plan.clauses.some(isDescendingIndex);
}

export function assertServerSupports(server: AlterContext, plan: AlterTable): void {
  if (hasUnsupportedOrder(server, plan)) throw unsupportedOrderError(server, plan);
}

function unsupportedOrderError({ traits, version }: AlterContext, plan: AlterTable | CreateTable): SvcError {
  const { descendingIndexesSince = [] } = traits;
  return new SvcError(
    'not_supported',
    `This ${traits.title} server does not support descending indexes: "${plan.table}".`,
    {
      why: `It has version ${version.join('.')}; descending indexes are supported since ${descendingIndexesSince.join('.')}.`,
      next: ['Remove the order, or use a newer server.'],
    },
  );
}

/** No other session can write a row between the check of the rows and the change. */
async function withTableLocked(exec: ExecSql, table: string, work: () => Promise<void>): Promise<void> {
  try {
    await exec(`LOCK TABLES ${quoteIdentifier(table)} WRITE`);
  } catch (error) {
    // Without the privilege, the check runs without a lock.
    if (!FORBIDDEN.has(errorNumber(error))) throw error;
  }
  try {
    await work();
  } finally {
    await exec('UNLOCK TABLES');
  }
}

const FORBIDDEN: ReadonlySet<number | undefined> = new Set([1044, 1142]);

/** False if the server can only do it with a copy of the table; nothing was changed then. */
export async function tryOnline(exec: ExecSql, sql: string): Promise<boolean> {
  for (const algorithm of [INSTANT, ONLINE]) {
    try {
      await exec(`${sql}, ${algorithm}`);
      return true;
    } catch (error) {
      if (!NOT_ONLINE.has(errorNumber(error))) throw error;
    }
  }
  return false;
}

async function alterTable(context: AlterContext, alter: AlterTable, sql: string): Promise<void> {
  const { exec, allowCopy } = context;
  if (!alter.clauses.some(requiresCopy) && (await tryOnline(exec, sql))) return;
  if (!allowCopy) {
    const size = await copySize(context, alter.table);
    if (!size.isSmall)
      throw copyRequiredError([{ table: alter.table, sql, ...size, blocksReads: alter.rejectRows !== undefined }]);
  }
  await exec(sql);
}

/** The server rejects the algorithm; nothing was changed. */
const NOT_ONLINE: ReadonlySet<number | undefined> = new Set([1845, 1846, 1800, 4092]);

/** Errors of a statement in its most likely form that another attempt with the catalog may avoid. */
export const NEEDS_CATALOG: ReadonlySet<number | undefined> = new Set([...NOT_ONLINE, INVALID_DEFAULT]);
