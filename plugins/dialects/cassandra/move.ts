import { createHash, randomUUID } from 'node:crypto';
import { SvcError } from '../../../core/errors.ts';
import type { Field } from '../../../core/schema/model.ts';
import { type CatalogTable, keyOfCatalog, readCatalog } from './catalog.ts';
import { converted } from './convert.ts';
import { untilKnown } from './known.ts';
import { quote } from './names.ts';
import { type RunPlace, UNLOCKED } from './place.ts';
import { Progress } from './progress.ts';
import { now } from './records.ts';
import { each, type Scan, scan } from './scan.ts';
import { decided } from './seat.ts';
import type { Row, Session } from './session.ts';
import type { Copy, Fill } from './statement.ts';
import { encode } from './value.ts';

/** When a value was written (in microseconds), and the seconds it has left; 0 for one that lives for ever. */
interface Times {
  readonly written: bigint;
  readonly left: number;
}

/*
 * A value that is moved keeps the time at which what it comes from was written. So whatever happens to the row in
 * between is later and wins, its end too: a plain UPDATE of now would bring back a row that was deleted meanwhile.
 */
const WRITTEN = 'svc:written';
const LEFT = 'svc:left';

const timesOf = (columns: readonly string[]): string[] =>
  columns.flatMap((name, at) => [
    `writetime(${quote(name)}) AS ${quote(`${WRITTEN}${at}`)}`,
    `ttl(${quote(name)}) AS ${quote(`${LEFT}${at}`)}`,
  ]);

/** Of each column that has a value; of a collection, of each of its elements. */
function timesIn(row: Row, at: number): Times[] {
  const [written, left] = [row[`${WRITTEN}${at}`], row[`${LEFT}${at}`]].map((one) =>
    Array.isArray(one) ? one : [one],
  );
  return (written ?? []).flatMap((time, index) => {
    if (time == null) return [];
    const seconds: unknown = left?.[index];
    // In its last second there is none left, and 0 would be for ever.
    return [{ written: BigInt(String(time)), left: seconds == null ? 0 : Math.max(1, Number(seconds)) }];
  });
}

const life = ({ left }: Times): number => (left === 0 ? Number.POSITIVE_INFINITY : left);

/** What is as old as the row lives as long as the longest of its values: of those the one that was written first. */
function longest(row: Row, columns: readonly string[]): Times | undefined {
  return columns
    .flatMap((_, at) => timesIn(row, at))
    .sort((a, b) => (life(a) === life(b) ? Number(a.written - b.written) : life(a) < life(b) ? 1 : -1))[0];
}

/** Before version 5 nobody can ask for the times of a collection's elements. */
const tellsOfCollections = ({ version }: Session): boolean => Number.parseInt(version, 10) >= 5;

/** Columns beside `but` that tell when a row was written and how long it lives. */
function witnessesOf(session: Session, found: CatalogTable | undefined, but: string): string[] {
  return [...(found?.columns.values() ?? [])]
    .filter(({ kind, type, name }) => {
      if (kind !== 'regular' || name === but) return false;
      return tellsOfCollections(session) || /^(\w+|frozen<.*)$/.test(type);
    })
    .map(({ name }) => name);
}

export async function copy(place: RunPlace, copied: Copy, epoch: number): Promise<void> {
  const { session } = place;
  const { table, from, to, list } = copied;
  const [found] = await readCatalog(session, [table]);
  const timed = list && !tellsOfCollections(session) ? witnessesOf(session, found, to) : [from];
  const converting = conversionOf(place, copied);
  await move(place, `copy ${from} ${to}`, table, [quote(from), ...timesOf(timed)], epoch, to, (row) => {
    const value = converting(row[from]);
    return value === null || value === undefined ? undefined : { value, list, times: longest(row, timed) };
  });
}

/**
 * Immediately before the old column is dropped: what was written to it since the copy came past. The later one of two
 * writes wins, so what has been written to the new column since stays.
 */
export async function copyLast(place: RunPlace, copied: Copy, epoch: number): Promise<void> {
  const { session, settings } = place;
  const { table, from, to, list } = copied;
  const [found] = await readCatalog(session, [table]);
  // Dropped by an attempt before this one.
  if (!found?.columns.has(from) || !found.columns.has(to)) return;
  if (list && !tellsOfCollections(session)) return;
  const converting = conversionOf(place, copied);
  const latest = (row: Row, at: number) =>
    timesIn(row, at).reduce<bigint | undefined>(
      (last, { written }) => (last === undefined || written > last ? written : last),
      undefined,
    );
  const writer = await writerOf(session, found, to);
  const selected = [...new Set([...writer.keys, from].map(quote)), ...timesOf([from, to])];
  for await (const { rows } of scan(session, { table, partition: writer.partition, selected })) {
    await refuseLost(place, epoch);
    await each(rows, settings.concurrency, async (row) => {
      const [old, now] = [latest(row, 0), latest(row, 1)];
      if (old === undefined || (now !== undefined && now >= old)) return;
      await writer.write(row, { value: converting(row[from]), list, times: longest(row, [from]) });
    });
  }
}

/** Values that cannot be converted were refused before: one that came since then ends it, and what is copied stays. */
function conversionOf({ session }: RunPlace, { table, converted: wanted }: Copy): (value: unknown) => unknown {
  if (!wanted) return (value) => value;
  const { from, to } = wanted;
  const writing = { types: session.types, moment: new Date() };
  return (value) => {
    const result = converted(value, from, to, writing);
    if ('value' in result) return result.value;
    throw new SvcError('data_violates', `A value of "${table}.${from.name}" cannot be copied to "${to.name}".`, {
      why: `${result.problem}. It was written after the values had been looked through.`,
      next: ['Correct it, then let the migration go on: it copies from where it was.'],
    });
  };
}

export async function fill(place: RunPlace, { table, field }: Fill, epoch: number): Promise<void> {
  const { session } = place;
  const [found] = await readCatalog(session, [table]);
  const witnesses = witnessesOf(session, found, field.name);
  const writing = { types: session.types, moment: await now(session) };
  const same = field.autoGenerate ? undefined : encode(defaultOf(field), field, writing);
  await move(place, `fill ${field.name}`, table, timesOf(witnesses), epoch, field.name, (row) => {
    const there = row[field.name];
    if (there !== null && there !== undefined) return undefined;
    return { value: same ?? encode(randomUUID(), field, writing), times: longest(row, witnesses) };
  });
}

function defaultOf({ name, default: value }: Field) {
  if (value === undefined) throw new Error(`${name} has no default`);
  return value;
}

interface Moved {
  readonly value: unknown;
  /** Where nothing tells them the row must be there still, in a lightweight transaction. */
  readonly times: Times | undefined;
  /** A list that is written twice with one time has everything twice: it is written as of now, for as long as it has left. */
  readonly list?: boolean;
}

interface Writer {
  readonly partition: readonly string[];
  /** The columns of the key in their order. */
  readonly keys: readonly string[];
  write(row: Row, moved: Moved): Promise<void>;
}

/** Puts a value into one column of a row that is there. */
async function writerOf(session: Session, found: CatalogTable, to: string): Promise<Writer> {
  const table = quote(found.name);
  const partition = keyOfCatalog(found, 'partition_key').map(({ name }) => name);
  const keys = [...partition, ...keyOfCatalog(found, 'clustering').map(({ name }) => name)];
  const byKey = keys.map((name) => `${quote(name)} = ?`).join(' AND ');
  const plainly = `UPDATE ${table} USING TIMESTAMP ? AND TTL ? SET ${quote(to)} = ? WHERE ${byKey}`;
  const surely = `UPDATE ${table} USING TTL ? SET ${quote(to)} = ? WHERE ${byKey} IF EXISTS`;
  const dropped = await droppedAt(session, found.name, to);
  return {
    partition,
    keys,
    async write(row, { value, times, list }) {
      const at = keys.map((name) => row[name]);
      if (times && !list && times.written > dropped) {
        await again(() => untilKnown(() => session.write(plainly, [times.written, times.left, value, ...at])));
      } else {
        const values = [times?.left ?? found.defaultTTL, value, ...at];
        await untilKnown(() => decided(session, { cql: surely, values }, async () => undefined));
      }
    },
  };
}

async function move(
  place: RunPlace,
  what: string,
  table: string,
  selected: readonly string[],
  epoch: number,
  to: string,
  moved: (row: Row) => Moved | undefined,
): Promise<void> {
  const { session, settings } = place;
  const [found] = await readCatalog(session, [table]);
  if (!found) throw new SvcError('collection_unknown', `The table "${table}" does not exist.`);
  const { partition, keys, write } = await writerOf(session, found, to);
  const progress = new Progress(
    session,
    settings,
    table,
    createHash('sha256')
      .update(JSON.stringify([what, table]))
      .digest('hex'),
    epoch !== UNLOCKED,
  );
  const { cursor, ...counted } = await progress.begin();
  const whole: Scan = { table, partition, selected: [...new Set([...keys, to].map(quote)), ...selected] };
  const through = async (pages: Scan, isAgain: boolean) => {
    for await (const page of scan(session, pages)) {
      await refuseLost(place, epoch);
      await each(page.rows, settings.concurrency, async (row) => {
        const there = row[to] !== null && row[to] !== undefined;
        if (keys.some((name) => row[name] === null) || (isAgain && there)) return;
        if (!isAgain) counted.matched += 1;
        const one = moved(row);
        if (!one) return;
        await write(row, one);
        counted.modified += 1;
      });
      if (!isAgain) await progress.reached(page.cursor, counted);
    }
  };
  await progress.during(async () => {
    await through({ ...whole, ...(cursor !== undefined && { from: cursor }) }, false);
    // What came since then to where the interrupted attempt had been.
    if (cursor !== undefined) await through({ ...whole, to: cursor }, true);
  });
  await progress.end();
}

/** In microseconds: a column of that name shows nothing that was written before it was dropped. */
async function droppedAt(session: Session, table: string, column: string): Promise<bigint> {
  const [row] = await session.rows(
    'SELECT dropped_time FROM system_schema.dropped_columns WHERE keyspace_name = ? AND table_name = ? AND column_name = ?',
    [session.keyspace, table, column],
  );
  return row ? BigInt((row.dropped_time as Date).getTime() + 1) * 1000n : -(2n ** 63n);
}

/** The same value with the same time: written twice it is written once. */
async function again(write: () => Promise<unknown>): Promise<void> {
  for (let left = 5; ; left -= 1) {
    try {
      await write();
      return;
    } catch (error) {
      if (left === 0) throw error;
    }
  }
}

/** Each page: the lock is ours, and nobody wants it to end. */
async function refuseLost({ lease, settings: { signal } }: RunPlace, epoch: number): Promise<void> {
  if (epoch !== UNLOCKED) await lease.assure(epoch);
  if (!signal?.aborted) return;
  throw new SvcError('interrupted', 'The run was interrupted while data moved.', {
    next: ['Run the command again: it goes on from there.'],
  });
}
