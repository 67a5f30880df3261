import { createHash, randomUUID } from 'node:crypto';
import { SvcError } from '../../../core/errors.ts';
import type { Field } from '../../../core/schema/model.ts';
import { keyOfCatalog, readCatalog } from './catalog.ts';
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

/** When a value was written (in microseconds), and the seconds it has left. */
interface Times {
  readonly written: unknown;
  readonly left: unknown;
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

function timesIn(row: Row, columns: readonly string[]): Times | undefined {
  const at = columns.findIndex((_, index) => row[`${WRITTEN}${index}`] != null);
  return at < 0 ? undefined : { written: row[`${WRITTEN}${at}`], left: row[`${LEFT}${at}`] ?? 0 };
}

export async function copy(place: RunPlace, copied: Copy, epoch: number): Promise<void> {
  const { table, from, to, list } = copied;
  const timed = list ? [] : [from];
  const converting = conversionOf(place, copied);
  await move(place, `copy ${from} ${to}`, table, [quote(from), ...timesOf(timed)], epoch, to, (row) => {
    const value = converting(row[from]);
    if (value === null || value === undefined) return undefined;
    const times = timesIn(row, timed);
    return { value, ...(times && { times }) };
  });
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

/** Columns of a row that tell when it was written: as many as that are asked. */
const WITNESSES = 16;

export async function fill(place: RunPlace, { table, field }: Fill, epoch: number): Promise<void> {
  const { session } = place;
  const [found] = await readCatalog(session, [table]);
  const witnesses = [...(found?.columns.values() ?? [])]
    .filter(({ kind, type, name }) => kind === 'regular' && /^\w+$/.test(type) && name !== field.name)
    .map(({ name }) => name)
    .slice(0, WITNESSES);
  const writing = { types: session.types, moment: await now(session) };
  const same = field.autoGenerate ? undefined : encode(defaultOf(field), field, writing);
  await move(place, `fill ${field.name}`, table, timesOf(witnesses), epoch, field.name, (row) => {
    const there = row[field.name];
    if (there !== null && there !== undefined) return undefined;
    const times = timesIn(row, witnesses);
    const value = same ?? encode(randomUUID(), field, writing);
    return { value, ...(times && { times }) };
  });
}

function defaultOf({ name, default: value }: Field) {
  if (value === undefined) throw new Error(`${name} has no default`);
  return value;
}

interface Moved {
  readonly value: unknown;
  /** Without them the row must be there still, in a lightweight transaction. */
  readonly times?: Times;
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
  const { session, settings, lease } = place;
  const [found] = await readCatalog(session, [table]);
  if (!found) throw new SvcError('collection_unknown', `The table "${table}" does not exist.`);
  const { defaultTTL } = found;
  const partition = keyOfCatalog(found, 'partition_key').map(({ name }) => name);
  const keys = [...partition, ...keyOfCatalog(found, 'clustering').map(({ name }) => name)];
  const byKey = keys.map((name) => `${quote(name)} = ?`).join(' AND ');
  const plainly = `UPDATE ${quote(table)} USING TIMESTAMP ? AND TTL ? SET ${quote(to)} = ? WHERE ${byKey}`;
  const surely = `UPDATE ${quote(table)} USING TTL ? SET ${quote(to)} = ? WHERE ${byKey} IF EXISTS`;
  const dropped = await droppedAt(session, table, to);
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
      if (epoch !== UNLOCKED) await lease.assure(epoch);
      refuseInterrupted(place);
      await each(page.rows, settings.concurrency, async (row) => {
        const there = row[to] !== null && row[to] !== undefined;
        if (keys.some((name) => row[name] === null) || (isAgain && there)) return;
        if (!isAgain) counted.matched += 1;
        const one = moved(row);
        if (!one) return;
        const at = keys.map((name) => row[name]);
        const { value, times } = one;
        if (times && BigInt(String(times.written)) > dropped) {
          await again(() => untilKnown(() => session.write(plainly, [times.written, times.left, value, ...at])));
        } else {
          const values = [times?.left ?? defaultTTL, value, ...at];
          await untilKnown(() => decided(session, { cql: surely, values }, async () => undefined));
        }
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

function refuseInterrupted({ settings: { signal } }: RunPlace): void {
  if (!signal?.aborted) return;
  throw new SvcError('connection_lost', 'The run was interrupted while data moved.', {
    next: ['Run the command again: it goes on from there.'],
  });
}
