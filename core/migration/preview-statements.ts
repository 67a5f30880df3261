import type { Connection, PreflightReport, Statement, StatementLock, TableCopy } from '../dialect.ts';
import { isSvcError } from '../errors.ts';
import type { MigrationOperation } from '../schema/operation.ts';
import { affectedCollections } from './affected-collections.ts';
import type { PlannedMigration } from './planned-migration.ts';
import type { Target } from './target.ts';

/** A statement of a plan, with what it would do to the current rows as far as that is known. */
export interface PreviewedStatement extends Statement {
  readonly copy?: Omit<TableCopy, 'statement'>;
  readonly loss?: TableLoss;
  readonly lock?: Omit<StatementLock, 'statement'>;
  /** Why the statement is certain to fail. */
  readonly failure?: unknown;
}

export interface CountOptions {
  /** Counts every row that is lost, and of a dropped field the rows in which it has a value. Default: up to 10,000 rows. */
  readonly countsAll?: boolean | undefined;
}

/** The table in which a statement destroys data, under its name before the run. */
export interface TableLoss {
  readonly collection: string;
  /** At most `MAX_COUNTED`, unless all are to be counted. */
  readonly rows: number;
  readonly hasMore: boolean;
  /** With `hasMore`: how many the catalog says there are, if it does. */
  readonly estimate?: number;
  /** Of a dropped field, if all are counted: the rows in which it has a value. */
  readonly values?: number;
}

export interface PreviewedMigration extends PlannedMigration {
  readonly statements: readonly PreviewedStatement[];
}

/** Counting more would be slow, and is paid for on some engines. */
const MAX_COUNTED = 10_000;

/** Replaces statement texts with the final ones, which may depend on the catalog, and adds what is known about the rows. */
export async function previewStatements(
  { connection }: Target,
  planned: readonly PlannedMigration[],
  { countsAll = false }: CountOptions = {},
): Promise<PreviewedMigration[]> {
  const preview = await connection.preview?.(
    planned.flatMap(({ statements }) => statements),
    planned.flatMap(({ operations = [] }) => operations),
  );
  const losses = await lossesByStatement(connection, planned, countsAll);
  let index = 0;
  return planned.map((one) => ({
    ...one,
    statements: one.statements.map((statement) => {
      const at = index++;
      const loss = losses.get(statement);
      const lock = preview?.locks?.find((one) => one.statement === at);
      return {
        ...statement,
        text: preview?.texts[at] ?? statement.text,
        ...(loss && { loss: withEstimate(loss, lock) }),
        ...(lock && { lock }),
        ...(preview && findingsOf(preview, at)),
      };
    }),
  }));
}

function withEstimate(loss: TableLoss, lock: StatementLock | undefined): TableLoss {
  const isKnown = loss.hasMore && lock?.collection === loss.collection && lock.rows > loss.rows;
  return isKnown ? { ...loss, estimate: lock.rows } : loss;
}

function findingsOf({ copies, failures }: PreflightReport, at: number): Pick<PreviewedStatement, 'copy' | 'failure'> {
  const copy = copies.find(({ statement }) => statement === at);
  const failure = failures.find(({ statement }) => statement === at)?.error;
  const isCopy = isSvcError(failure) && failure.code === 'copy_required';
  return { ...(copy && { copy }), ...(failure !== undefined && !isCopy && { failure }) };
}

async function lossesByStatement(
  connection: Connection,
  planned: readonly PlannedMigration[],
  countsAll: boolean,
): Promise<ReadonlyMap<Statement, TableLoss>> {
  const losses = new Map<Statement, TableLoss>();
  /** Each table's name before the run, by its name in the course of it. */
  const presentNames = new Map<string, string>();
  for (const { statements, operations = [] } of planned) {
    for (const [index, operation] of operations.entries()) {
      const statement = statements[index];
      const table = tableWithLoss(operation);
      if ((statement?.destructive || statement?.keptMs !== undefined) && table !== undefined) {
        const field = countsAll ? droppedField(operation) : undefined;
        const limit = countsAll ? Number.MAX_SAFE_INTEGER : MAX_COUNTED;
        const loss = await countLoss(connection, presentNames.get(table) ?? table, field, limit);
        if (loss) losses.set(statement, loss);
      }
      if (operation.type === 'renameCollection')
        presentNames.set(operation.to, presentNames.get(operation.collection) ?? operation.collection);
    }
  }
  return losses;
}

/** What a raw statement destroys is not known. */
const tableWithLoss = (operation: MigrationOperation): string | undefined =>
  operation.type === 'raw' ? undefined : affectedCollections(operation)[0];

/** Of one that is kept, the field that is renamed. */
const droppedField = (operation: MigrationOperation): string | undefined =>
  operation.type === 'dropField' ? operation.field : operation.type === 'renameField' ? operation.from : undefined;

async function countLoss(
  connection: Connection,
  collection: string,
  field: string | undefined,
  limit: number,
): Promise<TableLoss | undefined> {
  try {
    const found = await connection.count(collection, Math.min(limit + 1, Number.MAX_SAFE_INTEGER));
    const values = field === undefined ? undefined : await connection.countValues?.(collection, field, limit);
    const hasMore = found > limit;
    const estimate = hasMore ? await connection.estimateCount?.(collection) : undefined;
    return {
      collection,
      rows: Math.min(found, limit),
      hasMore,
      ...(estimate !== undefined && estimate > limit && { estimate }),
      ...(values !== undefined && { values }),
    };
  } catch (error) {
    // A table that was dropped by hand: the run itself reports it.
    if (isSvcError(error) && error.code === 'collection_unknown') return undefined;
    throw error;
  }
}

/** `more than 10,000 rows, about 3,000,000`, or `12,345 rows, 5 with a value` */
export function rowsOfLoss({ rows, hasMore, estimate, values }: TableLoss): string {
  const counted = `${hasMore ? 'more than ' : ''}${rowsText(rows)}`;
  const about = estimate === undefined ? '' : `, about ${estimate.toLocaleString('en')}`;
  return `${counted}${about}${values === undefined ? '' : `, ${values.toLocaleString('en')} with a value`}`;
}

/** `30 days` */
export function durationText(ms: number): string {
  const isDays = ms % DAY_MS === 0;
  const count = ms / (isDays ? DAY_MS : HOUR_MS);
  return `${count.toLocaleString('en')} ${isDays ? 'day' : 'hour'}${count === 1 ? '' : 's'}`;
}

export const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** `about 3,000,000 rows` */
export function rowsOfCopy({ rows, isEstimate }: Pick<TableCopy, 'rows' | 'isEstimate'>): string {
  return `${isEstimate ? 'about ' : ''}${rowsText(rows)}`;
}

/** `"orders" (about 3,000,000 rows): others read and write it while its rows are read, about 3 s` */
export function lockText({ collection, rows, blocks, work, seconds }: Omit<StatementLock, 'statement'>): string {
  const about = `"${collection}" (${rowsOfCopy({ rows, isEstimate: true })}):`;
  const blocked = blocks === 'nothing' ? 'others read and write it' : `blocks ${blocks}`;
  if (work === 'none') return `${about} ${blocks === 'nothing' ? blocked : `${blocked} for a moment`}`;
  return `${about} ${blocked} while its rows are ${work === 'read' ? 'read' : 'written'}, about ${seconds.toLocaleString('en')} s`;
}

const rowsText = (rows: number): string => `${rows.toLocaleString('en')} ${rows === 1 ? 'row' : 'rows'}`;
