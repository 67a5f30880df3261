import type { ClientSession, Document } from 'mongodb';
import type { RunObserver, RunOutcome } from '../../../../core/dialect.ts';
import { isSvcError } from '../../../../core/errors.ts';
import { CLOCK, ELAPSED, endsElapsed, type RecordWrite } from '../../../../core/records.ts';
import { lockLostError } from '../../shared/errors.ts';
import { type RegistryEntry, writeEntries } from '../catalog/registry.ts';
import type { MongoSegment } from '../compile/step.ts';
import { codeOf, DUPLICATE_KEY, toRunError } from '../connection/errors.ts';
import { notAfterEpoch } from '../connection/lease.ts';
import { MAJORITY_WITH_TIME_LIMIT, TIME_LIMIT } from '../connection/server.ts';
import { atVersion, noDocument, recordCollection, recordUpdate, VERSION } from '../records/record-writes.ts';
import { CreatePreflights } from './create-preflight.ts';
import type { RunContext } from './run-context.ts';
import { runStep } from './run-step.ts';

type WrittenValues = Readonly<Record<string, Date | number>>;

/**
 * Runs segments in order until one fails: statements outside transactions, the record writes of a segment in one. The
 * registry entries of a finished statement are written together with those of the next one.
 */
export async function runSegments(
  context: RunContext,
  segments: readonly MongoSegment[],
  observer?: RunObserver,
): Promise<RunOutcome> {
  const written: WrittenValues[][] = [];
  const preflights = new CreatePreflights(context.server, segments);
  /** Segments whose statements are done but whose record writes are not. */
  let unwritten: readonly MongoSegment[] = [];
  /** Registry entries to write before those record writes. */
  let entries: readonly RegistryEntry[] = [];
  let startedAt = performance.now();
  const committed = (values: WrittenValues[]): void => {
    written.push(values);
    observer?.onCommitted(values);
  };
  const failure = (error: unknown, rolledBack: boolean, statement?: number): RunOutcome => ({
    committed: written.length,
    written,
    failure: { statement, error: toRunError(error), ...(rolledBack && { rolledBack }) },
  });
  const flush = async (announcement: readonly RegistryEntry[] = []): Promise<void> => {
    await writeEntries(context, [...entries, ...announcement]);
    const segmentsToWrite = unwritten;
    entries = [];
    unwritten = [];
    for (const { writes } of segmentsToWrite) {
      const values = await writeRecords(context, writes, startedAt);
      if (endsElapsed({ writes })) startedAt = performance.now();
      committed(values);
    }
  };
  for (const [at, segment] of segments.entries()) {
    if (observer?.shouldContinue(at) === false) break;
    for (const [index, { run: step }] of segment.statements.entries()) {
      let changed = false;
      const onChange = () => {
        changed = true;
      };
      try {
        if (preflights.needsFlush(step)) await flush();
      } catch (error) {
        return failure(error, true);
      }
      const [preflight] = await Promise.allSettled([preflights.forStep(step)]);
      try {
        await flush(preflight.status === 'fulfilled' ? preflight.value?.announcement : []);
      } catch (error) {
        return failure(error, true);
      }
      try {
        if (preflight.status === 'rejected') throw preflight.reason;
        entries = await runStep({ ...context, onChange }, step, preflight.value);
      } catch (error) {
        // A collection of another program was not changed.
        const isForeign = isSvcError(error) && error.code === 'collection_exists';
        return failure(error, !changed || isForeign, index);
      }
    }
    // A segment without record writes does not depend on those of later segments.
    if (unwritten.length === 0 && segment.writes.length === 0) committed([]);
    else unwritten = [...unwritten, segment];
  }
  try {
    await flush();
  } catch (error) {
    return failure(error, true);
  }
  return { committed: written.length, written };
}

/** Writes several records in a transaction. A standalone server has no transactions and writes them one after another. */
async function writeRecords(
  context: RunContext,
  writes: readonly RecordWrite[],
  startedAt: number,
): Promise<WrittenValues[]> {
  if (writes.length === 0) return [];
  const { server } = context;
  const writeAll = async (session?: ClientSession): Promise<WrittenValues[]> => {
    const written: WrittenValues[] = [];
    for (const write of writes) written.push(await writeRecord(context, write, startedAt, session));
    return written;
  };
  await context.assertLockHeld();
  try {
    if (writes.length === 1 || !server.transactions) return await writeAll();
    return await server.client.withSession((session) =>
      session.withTransaction(() => writeAll(session), MAJORITY_WITH_TIME_LIMIT),
    );
  } catch (error) {
    if (codeOf(error) === DUPLICATE_KEY) throw lockLostError(error);
    throw error;
  }
}

/** Returns the values of the columns that the server or the clock filled in. */
async function writeRecord(
  { server, epoch }: RunContext,
  { definition, record, version }: RecordWrite,
  startedAt: number,
  session: ClientSession | undefined,
): Promise<WrittenValues> {
  const key = String(record[definition.key]);
  const filled = Object.keys(record).filter((name) => record[name] === CLOCK || record[name] === ELAPSED);
  const found: Document | null = await recordCollection(server, definition.collection).findOneAndUpdate(
    version === undefined ? noDocument(key) : { ...atVersion(key, version), ...notAfterEpoch(epoch) },
    recordUpdate(definition, record, startedAt, (version ?? 0) + 1, epoch),
    {
      upsert: version === undefined,
      returnDocument: 'after',
      projection: Object.fromEntries([...filled, VERSION].map((name) => [name, 1])),
      ...TIME_LIMIT,
      ...(session && { session }),
    },
  );
  if (!found) throw lockLostError();
  return Object.fromEntries(filled.map((name) => [name, found[name] as Date | number]));
}
