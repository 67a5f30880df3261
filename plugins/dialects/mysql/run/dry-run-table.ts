import { isSvcError } from '../../../../core/errors.ts';
import { readTable } from '../catalog/read-catalog.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import { type AlterTable, alterSql, type PlainClause } from '../compile/step.ts';
import { errorNumber, toSvcError } from '../connection/errors.ts';
import { assertEnumConvertible, assertNoRows } from '../data/conversion-checks.ts';
import { completeClauses } from './complete-alter.ts';
import type { TableChange } from './existing-table-changes.ts';
import { type AlterContext, allowingZeroDates, assertServerSupports, requiresCopy, tryOnline } from './online-alter.ts';
import { type CopySize, copySize } from './table-copy.ts';

/** An empty copy of a table, on which the changes of a run are tried: SQL cannot ask how an ALTER would run. */
const DRY_RUN_TABLE = '_svc_dry_run';

export interface TriedChanges {
  /** The first change that is certain to fail. Later ones were not tried. */
  readonly failed?: { readonly change: TableChange; readonly error: unknown };
  /** Changes that copy the table. */
  readonly copies: readonly { readonly change: TableChange; readonly size: CopySize }[];
}

/** Tries the changes of a table with rows. Needs the migration lock, because the copy has a fixed name. */
export async function tryChanges(
  context: AlterContext,
  table: string,
  changes: readonly TableChange[],
): Promise<TriedChanges> {
  const { exec } = context;
  const drop = `DROP TABLE IF EXISTS ${quoteIdentifier(DRY_RUN_TABLE)}`;
  const copies: { change: TableChange; size: CopySize }[] = [];
  let size: CopySize | undefined;
  let hasCopy = false;
  try {
    hasCopy = await createEmptyCopy(context, table, drop);
    if (hasCopy && changes.some(({ alter }) => alter.clauses.some(({ kind }) => kind === 'dropCheck')))
      await dropChecks(context);
    for (const change of changes) {
      try {
        await assertChange(context, table, change);
        const isOnline = hasCopy ? await tryChange(context, change.alter) : !change.alter.clauses.some(requiresCopy);
        if (isOnline) continue;
        size ??= await copySize(context, table);
        copies.push({ change, size });
      } catch (error) {
        if (isSvcError(error)) return { failed: { change, error }, copies };
        if (!DEFINITE.has(errorNumber(error))) throw error;
        return { failed: { change, error: toSvcError(error) }, copies };
      }
    }
  } catch (error) {
    // An error that only the copy causes is ignored: the real step reports its own.
    if (errorNumber(error) === undefined) throw error;
  } finally {
    if (hasCopy) await exec(drop);
  }
  return { copies };
}

/**
 * Errors of a definition that the table itself would get too: names and columns of indexes, keys, the place of an
 * auto-increment column, sizes, a table without the primary key that the server requires.
 */
const DEFINITE: ReadonlySet<number | undefined> = new Set([
  1061, 1064, 1068, 1069, 1070, 1071, 1072, 1074, 1075, 1101, 1113, 1117, 1118, 1167, 1171, 1280, 3750,
]);

/** False if the server does not permit it. */
async function createEmptyCopy(context: AlterContext, table: string, drop: string): Promise<boolean> {
  try {
    // A dead process may have left one.
    await allowingZeroDates(context, table, () =>
      context.exec(`${drop}; CREATE TABLE ${quoteIdentifier(DRY_RUN_TABLE)} LIKE ${quoteIdentifier(table)}`),
    );
    return true;
  } catch (error) {
    if (errorNumber(error) === undefined) throw error;
    return false;
  }
}

async function assertChange(
  context: AlterContext,
  presentTable: string,
  { alter, source, violations }: TableChange,
): Promise<void> {
  const { exec } = context;
  const { rejectRows, convertEnum, table } = alter;
  assertServerSupports(context, alter);
  // Other conditions may read columns that an earlier statement changes.
  if (rejectRows && source) await assertNoRows(exec, table, rejectRows, source.withClause);
  else if (rejectRows?.condition === 'TRUE') await assertNoRows(exec, presentTable, rejectRows);
  if (convertEnum && source) await assertEnumConvertible(exec, table, convertEnum, source.withClause);
  for (const violation of violations) await assertNoViolation(context, table, violation);
}

/** Ignores a condition that the server cannot evaluate yet: the step itself reports a violation. */
async function assertNoViolation(
  { exec }: AlterContext,
  table: string,
  violation: TableChange['violations'][number],
): Promise<void> {
  try {
    await assertNoRows(exec, table, violation, violation.source.withClause);
  } catch (error) {
    if (errorNumber(error) === undefined) throw error;
  }
}

/** A plan that drops a check is tried on a copy without checks: on MySQL, those of a copy have other names. */
async function dropChecks({ exec, traits }: AlterContext): Promise<void> {
  const { checks } = await readTable(exec, traits, DRY_RUN_TABLE);
  const clauses = checks
    .filter(({ ofColumn }) => !ofColumn)
    .map(({ name }): PlainClause => ({ kind: 'dropCheck', name }));
  if (clauses.length > 0) await exec(alterSql(traits, DRY_RUN_TABLE, clauses));
}

/** Clauses that are not tried on the copy: it keeps its name and has no foreign keys. */
const NOT_TRIED: ReadonlySet<string> = new Set(['renameTable', 'dropCheck', 'dropForeignKey']);

/** Makes the change on the copy; returns whether it runs online. */
async function tryChange(context: AlterContext, alter: AlterTable): Promise<boolean> {
  const { exec, traits } = context;
  const clauses = alter.clauses.filter((clause) => !NOT_TRIED.has(clause.kind) && !requiresCopy(clause));
  const isOnline = clauses.length === alter.clauses.length || !alter.clauses.some(requiresCopy);
  const tried = await completeClauses(exec, traits, { ...alter, clauses }, DRY_RUN_TABLE);
  if (tried.length === 0) return isOnline;
  const sql = alterSql(traits, DRY_RUN_TABLE, tried);
  return allowingZeroDates(context, DRY_RUN_TABLE, async () => {
    if (await tryOnline(exec, sql)) return isOnline;
    // Later changes may build on this one.
    await exec(sql);
    return false;
  });
}
