import { setTimeout as wait } from 'node:timers/promises';
import { SvcError } from '../../../core/errors.ts';
import { type AnyRecordDefinition, CLOCK, ELAPSED, type RecordValues, type Writable } from '../../../core/records.ts';
import { decodeRecord, encodeRecord } from './codec.ts';
import { isUnknown } from './errors.ts';
import { ATTEMPT, EPOCH, HOME, homeColumn, SCOPE, VERSION } from './home.ts';
import { quote } from './names.ts';
import type { Row, Session } from './session.ts';

/** Where the records of a definition lie: in the partition of the lock, or in a table of their own. */
export interface Seat {
  readonly definition: AnyRecordDefinition;
  readonly table: string;
  /** Beside the lock: its writes are fenced by the epoch in the same statement. */
  readonly home: boolean;
  column(name: string): string;
  /** The condition that finds a record, and its values. */
  readonly where: string;
  at(key: string): readonly unknown[];
}

export function seatOf(definition: AnyRecordDefinition, scope: string = SCOPE): Seat {
  const { collection, key } = definition;
  const home = definition.together === true || scope !== SCOPE;
  return home
    ? {
        definition,
        table: HOME,
        home,
        column: (name) => homeColumn(definition, name),
        where: 'scope = ? AND kind = ? AND key = ?',
        at: (id) => [scope, collection, id],
      }
    : {
        definition,
        table: collection,
        home,
        column: (name) => name,
        where: `${quote(key)} = ?`,
        at: (id) => [id],
      };
}

/** One conditional write of one record; a version of 0 means that there must be none. */
export interface Change {
  readonly seat: Seat;
  readonly key: string;
  readonly from: number;
  readonly to: number;
  /** Columns that are set; the others keep what they have. */
  readonly values: Writable<Partial<RecordValues>>;
  /** This column must lie after the engine's clock. */
  readonly before?: string | undefined;
}

interface Text {
  readonly cql: string;
  readonly values: readonly unknown[];
}

const FENCE = `UPDATE ${quote(HOME)} SET ${EPOCH} = ? WHERE scope = ? IF ${EPOCH} = ?`;

function changeText({ seat, key, from, to, values, before }: Change, attempt: unknown): Text {
  const { definition, table, column, where } = seat;
  // The key stands in the condition of a table of its own.
  const names = Object.keys(values).filter((name) => seat.home || name !== definition.key);
  const set = [...names.map((name) => `${quote(column(name))} = ?`), `${quote(VERSION)} = ?`, `${quote(ATTEMPT)} = ?`];
  const late = before === undefined ? '' : ` AND ${quote(column(before))} > toTimestamp(now())`;
  return {
    cql: `UPDATE ${quote(table)} SET ${set.join(', ')} WHERE ${where} IF ${quote(VERSION)} = ?${late}`,
    values: [
      ...names.map((name) => encoded(definition, name, values[name])),
      BigInt(to),
      attempt,
      ...seat.at(key),
      from === 0 ? null : BigInt(from),
    ],
  };
}

function encoded(definition: AnyRecordDefinition, name: string, value: unknown): unknown {
  const column = definition.columns[name];
  if (!column) throw new Error(`${definition.collection} has no column ${name}`);
  if (value === CLOCK || value === ELAPSED) throw new Error(`${name} was not given its moment`);
  return encodeRecord(value, column, name);
}

/**
 * Writes all of it or nothing, in one lightweight transaction: several changes must lie beside the lock. With an epoch
 * nothing is written once that is over. An answer that was lost is found out.
 */
export async function change(session: Session, changes: readonly Change[], epoch?: number): Promise<boolean> {
  const attempt = session.types.Uuid.random();
  const texts = changes.map((one) => changeText(one, attempt));
  const fenced =
    epoch === undefined ? texts : [{ cql: FENCE, values: [BigInt(epoch), SCOPE, BigInt(epoch)] }, ...texts];
  const [first] = changes;
  if (!first) return true;
  await refuseTooLong(session, first.seat.definition.collection, fenced);
  return decided(session, joined(fenced), async () => {
    const found = await read(session, first.seat, first.key);
    if (String(found?.[ATTEMPT]) === String(attempt)) return true;
    return versionOf(found) === first.from ? undefined : false;
  });
}

/** One statement, or a batch of one partition. */
function joined(texts: readonly Text[]): Text {
  const [only] = texts;
  if (only && texts.length === 1) return only;
  return {
    cql: `BEGIN BATCH ${texts.map(({ cql }) => `${cql};`).join(' ')} APPLY BATCH`,
    values: texts.flatMap(({ values }) => values),
  };
}

/** A node is asked for its bound only where a write comes near the smallest that anybody sets. */
const LARGE_BYTES = 256 * 1024;
/** What a node writes beside the values: names, times, the ballot. */
const BESIDE_BYTES = 8 * 1024;

/** The server says of one that is too long only that it had no answer in time. Throws `value_invalid`. */
async function refuseTooLong(session: Session, collection: string, texts: readonly Text[]): Promise<void> {
  const values = texts.flatMap(({ values }) => values).filter((value) => typeof value === 'string');
  const bytes = values.reduce((sum, value) => sum + Buffer.byteLength(value), BESIDE_BYTES);
  if (bytes < LARGE_BYTES) return;
  const most = await session.mostBytes();
  if (bytes <= most) return;
  throw new SvcError('value_invalid', `A record of "${collection}" is too long for Cassandra.`, {
    why: `It is written with ${bytes} bytes, and a write has at most ${most} here.`,
    state: 'It was not written.',
    next: ['Split what is to be stored, or raise max_mutation_size and commitlog_segment_size on every node.'],
  });
}

const TRIES = 8;

/**
 * Whether a lightweight transaction was applied. They time out without any fault where two write at once; then
 * `outcome` asks, at SERIAL, which also ends what hangs: undefined for one that never happened and may be sent again.
 */
export async function decided(
  session: Session,
  { cql, values }: Text,
  outcome: () => Promise<boolean | undefined>,
): Promise<boolean> {
  for (let left = TRIES; ; left -= 1) {
    try {
      const row = await session.transact(cql, values);
      return row?.['[applied]'] === true;
    } catch (error) {
      if (!isUnknown(error) || left === 0) throw error;
      const found = await asked(outcome, error);
      if (found !== undefined) return found;
    }
    await wait(Math.random() * 50);
  }
}

/** The question can time out like the write did. */
async function asked(outcome: () => Promise<boolean | undefined>, error: unknown): Promise<boolean | undefined> {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await outcome();
    } catch {
      if (left === 0) throw error;
    }
    await wait(100 + Math.random() * 100);
  }
}

export const versionOf = (row: Row | undefined): number => Number(row?.[VERSION] ?? 0);

const selection = ({ definition, table, column }: Seat): string => {
  const names = [...Object.keys(definition.columns).map(column), VERSION, ATTEMPT];
  return `SELECT ${names.map(quote).join(', ')} FROM ${quote(table)}`;
};

/** Linearizable. */
export async function read(session: Session, seat: Seat, key: string): Promise<Row | undefined> {
  const [row] = await session.serially(`${selection(seat)} WHERE ${seat.where}`, seat.at(key));
  return row && versionOf(row) > 0 ? row : undefined;
}

/** Partitions that one request asks for. */
const TOGETHER = 25;

/** Records of a table of their own, by key, as a quorum has them: what was answered is in it, what hangs is not. */
export async function readMany(
  session: Session,
  seat: Seat,
  keys: ReadonlySet<string>,
): Promise<ReadonlyMap<string, Row>> {
  const { key } = seat.definition;
  const cql = `${selection(seat)} WHERE ${quote(key)} IN ?`;
  const all = [...keys];
  const parts = Array.from({ length: Math.ceil(all.length / TOGETHER) }, (_, part) =>
    all.slice(part * TOGETHER, (part + 1) * TOGETHER),
  );
  const rows = (await Promise.all(parts.map((part) => session.rows(cql, [part])))).flat();
  return new Map(rows.filter((row) => versionOf(row) > 0).map((row) => [String(row[key]), row]));
}

export function recordOf(seat: Seat, row: Row, names = Object.keys(seat.definition.columns)): RecordValues {
  return Object.fromEntries(
    names.map((name) => {
      const column = seat.definition.columns[name];
      if (!column) throw new Error(`${seat.definition.collection} has no column ${name}`);
      return [name, decodeRecord(row[seat.column(name)], column)];
    }),
  );
}

export async function erase(session: Session, seat: Seat, key: string, version: number): Promise<boolean> {
  const cql = `DELETE FROM ${quote(seat.table)} WHERE ${seat.where} IF ${quote(VERSION)} = ?`;
  return decided(session, { cql, values: [...seat.at(key), BigInt(version)] }, async () => {
    const found = versionOf(await read(session, seat, key));
    return found === version ? undefined : found === 0;
  });
}

/** Whether no later holder of the lock has been there. */
export async function epochStands(session: Session, epoch: number): Promise<boolean> {
  const [row] = await session.serially(`SELECT ${EPOCH} FROM ${quote(HOME)} WHERE scope = ? LIMIT 1`, [SCOPE]);
  return Number(row?.[EPOCH] ?? 0) === epoch;
}

export function writeLost(cause?: unknown): SvcError {
  return new SvcError('lock_lost', 'The migration lock was lost: another process has moved on.', {
    why: 'The row to write is not the one that was read under the lock.',
    next: ['Run the command again.'],
    ...(cause !== undefined && { cause }),
  });
}
