import { setTimeout as wait } from 'node:timers/promises';
import { SvcError } from '../../../../core/errors.ts';
import {
  type AnyRecordDefinition,
  CLOCK,
  columnOf,
  ELAPSED,
  type RecordValues,
  type Writable,
} from '../../../../core/records.ts';
import { quoteIdentifier } from '../compile/names.ts';
import { isOutcomeUnknown } from '../connection/errors.ts';
import type { Row, Session } from '../connection/session.ts';
import {
  ATTEMPT_COLUMN,
  EPOCH_COLUMN,
  LOCK_SCOPE,
  LOCK_TABLE,
  lockTableColumn,
  VERSION_COLUMN,
} from './lock-partition.ts';
import { decodeColumn, encodeColumn } from './record-values.ts';

/** Where the records of a definition are stored: in the lock partition or in their own table. */
export interface RecordLocation {
  readonly definition: AnyRecordDefinition;
  readonly table: string;
  /** Writes in the lock partition check the epoch in the same statement. */
  readonly inLockPartition: boolean;
  column(name: string): string;
  /** The WHERE clause for a record; `keyValues` returns its values. */
  readonly where: string;
  keyValues(key: string): readonly unknown[];
}

export function locationOf(definition: AnyRecordDefinition, scope: string = LOCK_SCOPE): RecordLocation {
  const { collection, key } = definition;
  const inLockPartition = definition.colocateWithLock === true || scope !== LOCK_SCOPE;
  return inLockPartition
    ? {
        definition,
        table: LOCK_TABLE,
        inLockPartition,
        column: (name) => lockTableColumn(definition, name),
        where: 'scope = ? AND kind = ? AND key = ?',
        keyValues: (id) => [scope, collection, id],
      }
    : {
        definition,
        table: collection,
        inLockPartition,
        column: (name) => name,
        where: `${quoteIdentifier(key)} = ?`,
        keyValues: (id) => [id],
      };
}

/** A conditional write of a record. `from` is the expected version, 0 for a new record. */
export interface RecordChange {
  readonly location: RecordLocation;
  readonly key: string;
  readonly from: number;
  readonly to: number;
  /** The columns to write; others are unchanged. */
  readonly values: Writable<Partial<RecordValues>>;
  /** Columns that are null already. Writing it again would leave a tombstone in each. */
  readonly nulls?: ReadonlySet<string>;
  /** The name of a column that must be later than the cluster's time. */
  readonly before?: string | undefined;
}

interface BoundStatement {
  readonly cql: string;
  readonly values: readonly unknown[];
}

const EPOCH_CHECK = `UPDATE ${quoteIdentifier(LOCK_TABLE)} SET ${EPOCH_COLUMN} = ? WHERE scope = ? IF ${EPOCH_COLUMN} = ?`;

function changeStatement(
  { types }: Pick<Session, 'types'>,
  { location, key, from, to, values, nulls, before }: RecordChange,
  attempt: unknown,
): BoundStatement {
  const { definition, table, column, where } = location;
  // In a separate table, the key is in the WHERE clause.
  const names = Object.keys(values).filter((name) => location.inLockPartition || name !== definition.key);
  const set = [
    ...names.map((name) => `${quoteIdentifier(column(name))} = ?`),
    `${quoteIdentifier(VERSION_COLUMN)} = ?`,
    `${quoteIdentifier(ATTEMPT_COLUMN)} = ?`,
  ];
  const deadline = before === undefined ? '' : ` AND ${quoteIdentifier(column(before))} > toTimestamp(now())`;
  return {
    cql: `UPDATE ${quoteIdentifier(table)} SET ${set.join(', ')} WHERE ${where} IF ${quoteIdentifier(VERSION_COLUMN)} = ?${deadline}`,
    values: [
      ...names.map((name) => {
        const isNull = values[name] === null && (from === 0 || nulls?.has(name) === true);
        return isNull ? types.unset : encodeNamedColumn(definition, name, values[name]);
      }),
      BigInt(to),
      attempt,
      ...location.keyValues(key),
      from === 0 ? null : BigInt(from),
    ],
  };
}

function encodeNamedColumn(definition: AnyRecordDefinition, name: string, value: unknown): unknown {
  const column = definition.columns[name];
  if (!column) throw new Error(`${definition.collection} has no column ${name}`);
  if (value === CLOCK || value === ELAPSED) throw new Error(`${name} has an unresolved time`);
  return encodeColumn(value, column, name);
}

/**
 * Writes all or nothing in one lightweight transaction; several changes must be in the lock partition. With an epoch,
 * nothing is written if the lock has been taken since. Resolves lost responses.
 */
export async function applyChanges(
  session: Session,
  changes: readonly RecordChange[],
  epoch?: number,
): Promise<boolean> {
  const attempt = session.types.Uuid.random();
  const statements = changes.map((one) => changeStatement(session, one, attempt));
  const checked =
    epoch === undefined
      ? statements
      : [{ cql: EPOCH_CHECK, values: [BigInt(epoch), LOCK_SCOPE, BigInt(epoch)] }, ...statements];
  const [first] = changes;
  if (!first) return true;
  await assertWriteSize(session, first.location.definition.collection, checked);
  return transactApplied(session, joinStatements(checked), async () => {
    const found = await readRecord(session, first.location, first.key);
    if (String(found?.[ATTEMPT_COLUMN]) === String(attempt)) return true;
    return versionOf(found) === first.from ? undefined : false;
  });
}

function joinStatements(statements: readonly BoundStatement[]): BoundStatement {
  const [only] = statements;
  if (only && statements.length === 1) return only;
  return {
    cql: `BEGIN BATCH ${statements.map(({ cql }) => `${cql};`).join(' ')} APPLY BATCH`,
    values: statements.flatMap(({ values }) => values),
  };
}

/** The limit is read from a node only for writes above this size. */
const CHECK_SIZE_ABOVE = 256 * 1024;
/** An estimate of names, timestamps and the ballot. */
const OVERHEAD_BYTES = 8 * 1024;

/** Throws `value_invalid`. The server would only report a timeout for a write that is too large. */
async function assertWriteSize(
  session: Session,
  collection: string,
  statements: readonly BoundStatement[],
): Promise<void> {
  const values = statements.flatMap(({ values }) => values).filter((value) => typeof value === 'string');
  const bytes = values.reduce((sum, value) => sum + Buffer.byteLength(value), OVERHEAD_BYTES);
  if (bytes < CHECK_SIZE_ABOVE) return;
  const maxBytes = await session.maxWriteBytes();
  if (bytes <= maxBytes) return;
  throw new SvcError('value_invalid', `A record of "${collection}" is too large for Cassandra.`, {
    why: `Its write has ${bytes} bytes; the limit of the server is ${maxBytes}.`,
    state: 'It was not written.',
    next: ['Split the content, or raise max_mutation_size and commitlog_segment_size on every node.'],
  });
}

const MAX_TRIES = 8;

/**
 * Runs a lightweight transaction and returns whether it was applied. Concurrent writes make it time out; then `outcome`
 * reads at SERIAL, which also completes a pending transaction. Undefined from `outcome` means not applied, and retries.
 */
export async function transactApplied(
  session: Session,
  { cql, values }: BoundStatement,
  outcome: () => Promise<boolean | undefined>,
): Promise<boolean> {
  for (let left = MAX_TRIES; ; left -= 1) {
    try {
      const row = await session.transact(cql, values);
      return row?.['[applied]'] === true;
    } catch (error) {
      if (!isOutcomeUnknown(error) || left === 0) throw error;
      const found = await resolveOutcome(outcome, error);
      if (found !== undefined) return found;
    }
    await wait(Math.random() * 50);
  }
}

/** The read can time out as well. */
async function resolveOutcome(
  outcome: () => Promise<boolean | undefined>,
  error: unknown,
): Promise<boolean | undefined> {
  for (let left = MAX_TRIES; ; left -= 1) {
    try {
      return await outcome();
    } catch {
      if (left === 0) throw error;
    }
    await wait(100 + Math.random() * 100);
  }
}

export const versionOf = (row: Row | undefined): number => Number(row?.[VERSION_COLUMN] ?? 0);

const selection = (
  { definition, table, column }: RecordLocation,
  columns: readonly string[] = Object.keys(definition.columns),
): string => {
  const names = [...columns.map(column), VERSION_COLUMN, ATTEMPT_COLUMN];
  return `SELECT ${names.map(quoteIdentifier).join(', ')} FROM ${quoteIdentifier(table)}`;
};

/** Linearizable. */
export async function readRecord(session: Session, location: RecordLocation, key: string): Promise<Row | undefined> {
  const [row] = await session.readSerial(`${selection(location)} WHERE ${location.where}`, location.keyValues(key));
  return row && versionOf(row) > 0 ? row : undefined;
}

const KEYS_PER_REQUEST = 25;

/** Reads these columns of records of a separate table at LOCAL_QUORUM, which includes confirmed writes but not pending transactions. */
export async function readRecords(
  session: Session,
  location: RecordLocation,
  keys: ReadonlySet<string>,
  columns: readonly string[],
): Promise<ReadonlyMap<string, Row>> {
  const { key } = location.definition;
  const cql = `${selection(location, columns)} WHERE ${quoteIdentifier(key)} IN ?`;
  const all = [...keys];
  const parts = Array.from({ length: Math.ceil(all.length / KEYS_PER_REQUEST) }, (_, part) =>
    all.slice(part * KEYS_PER_REQUEST, (part + 1) * KEYS_PER_REQUEST),
  );
  const rows = (await Promise.all(parts.map((part) => session.rows(cql, [part])))).flat();
  return new Map(rows.filter((row) => versionOf(row) > 0).map((row) => [String(row[key]), row]));
}

export function decodeRecord(
  location: RecordLocation,
  row: Row,
  names: readonly string[] = Object.keys(location.definition.columns),
): RecordValues {
  return Object.fromEntries(
    names.map((name) => [name, decodeColumn(row[location.column(name)], columnOf(location.definition, name))]),
  );
}

export async function deleteRecord(
  session: Session,
  location: RecordLocation,
  key: string,
  version: number,
): Promise<boolean> {
  const cql = `DELETE FROM ${quoteIdentifier(location.table)} WHERE ${location.where} IF ${quoteIdentifier(VERSION_COLUMN)} = ?`;
  return transactApplied(session, { cql, values: [...location.keyValues(key), BigInt(version)] }, async () => {
    const found = versionOf(await readRecord(session, location, key));
    return found === version ? undefined : found === 0;
  });
}

/** Whether the lock has not been taken since this epoch. */
export async function isEpochCurrent(session: Session, epoch: number): Promise<boolean> {
  const [row] = await session.readSerial(
    `SELECT ${EPOCH_COLUMN} FROM ${quoteIdentifier(LOCK_TABLE)} WHERE scope = ? LIMIT 1`,
    [LOCK_SCOPE],
  );
  return Number(row?.[EPOCH_COLUMN] ?? 0) === epoch;
}
