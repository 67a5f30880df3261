import { createHash, randomUUID } from 'node:crypto';
import { SvcError } from '../../../../core/errors.ts';
import type { Field } from '../../../../core/schema/model.ts';
import { type CatalogTable, keyOfTable, readCatalog } from '../catalog/read-catalog.ts';
import { quoteIdentifier } from '../compile/names.ts';
import type { CopyStep, FillStep } from '../compile/step.ts';
import { isOutcomeUnknown, isOverloaded } from '../connection/errors.ts';
import { retryDuringSchemaLag } from '../connection/schema-lag.ts';
import type { Row, Session } from '../connection/session.ts';
import { clusterNow } from '../records/record-store.ts';
import { transactApplied } from '../records/record-writes.ts';
import { type RunContext, UNLOCKED } from '../run/run-context.ts';
import { convertValue } from './convert-value.ts';
import { type ScanRange, scan, writePage } from './scan.ts';
import { ScanProgress } from './scan-progress.ts';
import { encodeValue } from './value.ts';
import { whileBusy } from './while-busy.ts';

/** When a value was written, in microseconds, and its remaining time to live in seconds; 0 if it does not expire. */
interface WriteTimes {
  readonly writtenAt: bigint;
  readonly secondsLeft: number;
}

/*
 * A moved value keeps the write time of its source, so every concurrent write or deletion is later and wins. An UPDATE
 * with the current time could bring back a row that was deleted in between.
 */
const WRITTEN_ALIAS = 'svc:written';
const LEFT_ALIAS = 'svc:left';

const timeSelectors = (columns: readonly string[]): string[] =>
  columns.flatMap((name, at) => [
    `writetime(${quoteIdentifier(name)}) AS ${quoteIdentifier(`${WRITTEN_ALIAS}${at}`)}`,
    `ttl(${quoteIdentifier(name)}) AS ${quoteIdentifier(`${LEFT_ALIAS}${at}`)}`,
  ]);

/** One entry for a column with a value, one per element for a collection. */
function readTimes(row: Row, at: number): WriteTimes[] {
  const [written, left] = [row[`${WRITTEN_ALIAS}${at}`], row[`${LEFT_ALIAS}${at}`]].map((one) =>
    Array.isArray(one) ? one : [one],
  );
  return (written ?? []).flatMap((time, index) => {
    if (time == null) return [];
    const seconds: unknown = left?.[index];
    // In the last second ttl() is 0, which would mean no expiry as a TTL.
    return [{ writtenAt: BigInt(String(time)), secondsLeft: seconds == null ? 0 : Math.max(1, Number(seconds)) }];
  });
}

const lifetime = ({ secondsLeft }: WriteTimes): number => (secondsLeft === 0 ? Number.POSITIVE_INFINITY : secondsLeft);

/** The times of the value that lives longest and, among those, was written first: a filled value lives as long as its row. */
function longestLived(row: Row, columns: readonly string[]): WriteTimes | undefined {
  return columns
    .flatMap((_, at) => readTimes(row, at))
    .sort((a, b) =>
      lifetime(a) === lifetime(b) ? Number(a.writtenAt - b.writtenAt) : lifetime(a) < lifetime(b) ? 1 : -1,
    )[0];
}

/** Before Cassandra 5.0 writetime() and ttl() do not accept collections. */
const canReadElementTimes = ({ version }: Session): boolean => Number.parseInt(version, 10) >= 5;

/** The columns, except `excluded`, whose times show when a row was written and how long it lives. */
function timedColumns(session: Session, found: CatalogTable | undefined, excluded: string): string[] {
  return [...(found?.columns.values() ?? [])]
    .filter(({ kind, type, name }) => {
      if (kind !== 'regular' || name === excluded) return false;
      return canReadElementTimes(session) || /^(\w+|frozen<.*)$/.test(type);
    })
    .map(({ name }) => name);
}

export async function copyColumn(context: RunContext, step: CopyStep, epoch: number): Promise<void> {
  const { session } = context;
  const { table, from, to, list } = step;
  const [found] = await readCatalog(session, [table]);
  const timed = list && !canReadElementTimes(session) ? timedColumns(session, found, to) : [from];
  const convert = converterOf(context, step);
  await moveColumn(
    context,
    `copy ${from} ${to}`,
    table,
    [quoteIdentifier(from), ...timeSelectors(timed)],
    epoch,
    to,
    (row) => {
      const value = convert(row[from]);
      return value === null || value === undefined ? undefined : { value, list, times: longestLived(row, timed) };
    },
  );
}

/**
 * Copies values written to the old column since the copy, immediately before that column is dropped. A later write to
 * the new column wins.
 */
export async function copyLateWrites(context: RunContext, step: CopyStep, epoch: number): Promise<void> {
  const { session, settings } = context;
  const { table, from, to, list } = step;
  const [found] = await readCatalog(session, [table]);
  // An earlier attempt has dropped it.
  if (!found?.columns.has(from) || !found.columns.has(to)) return;
  if (list && !canReadElementTimes(session)) return;
  const convert = converterOf(context, step);
  const latest = (row: Row, at: number) =>
    readTimes(row, at).reduce<bigint | undefined>(
      (last, { writtenAt }) => (last === undefined || writtenAt > last ? writtenAt : last),
      undefined,
    );
  const writer = await columnWriter(session, found, to);
  const selected = [...new Set([...writer.keys, from].map(quoteIdentifier)), ...timeSelectors([from, to])];
  for await (const page of scan(session, { table, partition: writer.partition, selected })) {
    await assertRunning(context, epoch);
    await writePage(page, settings.concurrency, async (row) => {
      const [old, now] = [latest(row, 0), latest(row, 1)];
      if (old === undefined || (now !== undefined && now >= old)) return false;
      await writer.write(row, { value: convert(row[from]), list, times: longestLived(row, [from]) });
      return true;
    });
  }
}

/** All values were checked before the copy, so a failure means that a value was written since. */
function converterOf({ session }: RunContext, { table, converted: conversion }: CopyStep): (value: unknown) => unknown {
  if (!conversion) return (value) => value;
  const { from, to } = conversion;
  const encodeContext = { types: session.types, now: new Date() };
  return (value) => {
    const result = convertValue(value, from, to, encodeContext);
    if ('value' in result) return result.value;
    throw new SvcError('data_violates', `A value of "${table}.${from.name}" cannot be copied to "${to.name}".`, {
      why: `${result.problem}. It was written after the values had been checked.`,
      next: ['Correct it, then run the migration again: it resumes the copy.'],
    });
  };
}

export async function fillDefaults(context: RunContext, { table, field }: FillStep, epoch: number): Promise<void> {
  const { session } = context;
  const [found] = await readCatalog(session, [table]);
  const timed = timedColumns(session, found, field.name);
  const encodeContext = { types: session.types, now: await clusterNow(session) };
  const value = field.autoGenerate ? undefined : encodeValue(defaultOf(field), field, encodeContext);
  await moveColumn(context, `fill ${field.name}`, table, timeSelectors(timed), epoch, field.name, (row) => {
    const current = row[field.name];
    if (current !== null && current !== undefined) return undefined;
    return { value: value ?? encodeValue(randomUUID(), field, encodeContext), times: longestLived(row, timed) };
  });
}

function defaultOf({ name, default: value }: Field) {
  if (value === undefined) throw new Error(`${name} has no default`);
  return value;
}

interface ColumnWrite {
  readonly value: unknown;
  /** Undefined if unknown: then a lightweight transaction checks that the row still exists. */
  readonly times: WriteTimes | undefined;
  /** A list written twice with the same time would contain its elements twice, so it is written with the current time. */
  readonly list?: boolean;
}

interface ColumnWriter {
  readonly partition: readonly string[];
  /** The key columns in order. */
  readonly keys: readonly string[];
  write(row: Row, columnWrite: ColumnWrite): Promise<void>;
}

/** Writes a value to one column of existing rows. */
async function columnWriter(session: Session, found: CatalogTable, to: string): Promise<ColumnWriter> {
  const table = quoteIdentifier(found.name);
  const partition = keyOfTable(found, 'partition_key').map(({ name }) => name);
  const keys = [...partition, ...keyOfTable(found, 'clustering').map(({ name }) => name)];
  const byKey = keys.map((name) => `${quoteIdentifier(name)} = ?`).join(' AND ');
  const timestamped = `UPDATE ${table} USING TIMESTAMP ? AND TTL ? SET ${quoteIdentifier(to)} = ? WHERE ${byKey}`;
  const ifExists = `UPDATE ${table} USING TTL ? SET ${quoteIdentifier(to)} = ? WHERE ${byKey} IF EXISTS`;
  const droppedAt = await columnDroppedAt(session, found.name, to);
  return {
    partition,
    keys,
    async write(row, { value, times, list }) {
      const key = keys.map((name) => row[name]);
      if (times && !list && times.writtenAt > droppedAt) {
        // Safe to repeat: the value and its write time are the same.
        await whileBusy(
          () =>
            retryDuringSchemaLag(() => session.write(timestamped, [times.writtenAt, times.secondsLeft, value, ...key])),
          (error) => isOverloaded(error) || isOutcomeUnknown(error),
        );
      } else {
        const values = [times?.secondsLeft ?? found.defaultTTL, value, ...key];
        await whileBusy(() =>
          retryDuringSchemaLag(() => transactApplied(session, { cql: ifExists, values }, async () => undefined)),
        );
      }
    },
  };
}

async function moveColumn(
  context: RunContext,
  what: string,
  table: string,
  selected: readonly string[],
  epoch: number,
  to: string,
  writeFor: (row: Row) => ColumnWrite | undefined,
): Promise<void> {
  const { session, settings } = context;
  const [found] = await readCatalog(session, [table]);
  if (!found) throw new SvcError('collection_unknown', `The table "${table}" does not exist.`);
  const { partition, keys, write } = await columnWriter(session, found, to);
  const progress = new ScanProgress(
    session,
    settings,
    table,
    createHash('sha256')
      .update(JSON.stringify([what, table]))
      .digest('hex'),
    epoch !== UNLOCKED,
  );
  const { cursor, ...counts } = await progress.load();
  const fullRange: ScanRange = {
    table,
    partition,
    selected: [...new Set([...keys, to].map(quoteIdentifier)), ...selected],
  };
  const moveRange = async (range: ScanRange, isRescan: boolean) => {
    for await (const page of scan(session, range)) {
      await assertRunning(context, epoch);
      await writePage(page, settings.concurrency, async (row) => {
        const hasValue = row[to] !== null && row[to] !== undefined;
        if (keys.some((name) => row[name] === null) || (isRescan && hasValue)) return false;
        if (!isRescan) counts.matched += 1;
        const columnWrite = writeFor(row);
        if (!columnWrite) return false;
        await write(row, columnWrite);
        counts.modified += 1;
        return true;
      });
      if (!isRescan) await progress.save(page.cursor, counts);
    }
  };
  await progress.releaseOnFailure(async () => {
    await moveRange({ ...fullRange, ...(cursor !== undefined && { from: cursor }) }, false);
    // Rows inserted before the position since the interrupted attempt.
    if (cursor !== undefined) await moveRange({ ...fullRange, to: cursor }, true);
  });
  await progress.finish();
}

/** In microseconds. Values with an earlier write time stay hidden in a new column of the same name. */
async function columnDroppedAt(session: Session, table: string, column: string): Promise<bigint> {
  const [row] = await session.rows(
    'SELECT dropped_time FROM system_schema.dropped_columns WHERE keyspace_name = ? AND table_name = ? AND column_name = ?',
    [session.keyspace, table, column],
  );
  return row ? BigInt((row.dropped_time as Date).getTime() + 1) * 1000n : -(2n ** 63n);
}

/** Called for each page. Throws `lock_lost` or `interrupted`. */
async function assertRunning({ lease, settings: { signal } }: RunContext, epoch: number): Promise<void> {
  if (epoch !== UNLOCKED) await lease.assertHeld(epoch);
  if (!signal?.aborted) return;
  throw new SvcError('interrupted', 'The run was interrupted during a data move.', {
    next: ['Run the command again: it resumes from there.'],
  });
}
