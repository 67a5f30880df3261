import type { RunObserver, RunOutcome } from '../../../../core/dialect.ts';
import { isSvcError } from '../../../../core/errors.ts';
import {
  CLOCK,
  ELAPSED,
  endsElapsed,
  type RecordValues,
  type RecordWrite,
  type Writable,
} from '../../../../core/records.ts';
import { lockLostError } from '../../shared/errors.ts';
import { registryWrite } from '../catalog/registry.ts';
import type { CassandraSegment, CassandraStatement } from '../compile/step.ts';
import { isRejected, outcomeUnknownError, toSvcError } from '../connection/errors.ts';
import { copyColumn, fillDefaults } from '../data/copy-column.ts';
import { applyChanges, isEpochCurrent, locationOf, type RecordChange } from '../records/record-writes.ts';
import { awaitEffect, runDdl, runRawStatement } from './ddl.ts';
import { assertRowsFit, CreatePreflights, type Preparation, prepareDdl } from './preflight.ts';
import { type RunContext, UNLOCKED } from './run-context.ts';

type WrittenValues = RunOutcome['written'][number];

/** Record writes per batch, because the server limits the size of a mutation. */
const MAX_WRITES = 20;

/**
 * Runs segments in order. Record writes of consecutive segments share one batch with an epoch check and the registry
 * write of the statement that follows.
 */
export async function runSegments(
  context: RunContext,
  segments: readonly CassandraSegment[],
  epoch: number,
  observer?: RunObserver,
): Promise<RunOutcome> {
  const written: WrittenValues[] = [];
  const preflights = new CreatePreflights(context, segments);
  const stopwatch = new Stopwatch();
  /** Segments whose statements have run but whose record writes are pending. */
  let pending: readonly CassandraSegment[] = [];
  const commit = (values: WrittenValues): void => {
    written.push(values);
    observer?.onCommitted(values);
  };
  const failed = (error: unknown, statement?: number, rolledBack = false): RunOutcome => ({
    committed: written.length,
    written,
    failure: {
      statement,
      error: statement === undefined ? toSvcError(error) : runError(error),
      ...(rolledBack && { rolledBack }),
    },
  });
  const flush = async (registryWrites: readonly RecordChange[] = []): Promise<void> => {
    const groups = groupSegments(pending);
    pending = [];
    for (const [index, group] of groups.entries()) {
      const values = await writeSegments(
        context,
        group,
        epoch,
        stopwatch,
        index === groups.length - 1 ? registryWrites : [],
      );
      for (const one of values) commit(one);
    }
  };
  for (const [at, segment] of segments.entries()) {
    if (observer?.shouldContinue(at) === false) break;
    for (const [index, statement] of segment.statements.entries()) {
      const [prepared] = await Promise.allSettled([prepare(context, preflights, statement)]);
      try {
        await flush(prepared.status === 'fulfilled' ? prepared.value.registryWrites : []);
      } catch (error) {
        return failed(error);
      }
      try {
        if (prepared.status === 'rejected') throw prepared.reason;
        await runStatement(context, statement, epoch, prepared.value);
      } catch (error) {
        const isSingleStatement = statement.run.kind === 'ddl' || statement.run.kind === 'raw';
        return failed(error, index, prepared.status === 'rejected' || (isSingleStatement && isRejected(error)));
      }
    }
    // A statement without writes is done, whatever happens to later writes.
    if (pending.length === 0 && segment.writes.length === 0) commit([]);
    else pending = [...pending, segment];
  }
  try {
    if (pending.length > 0) await flush();
  } catch (error) {
    return failed(error);
  }
  return { committed: written.length, written };
}

/** Returns at least one group, which the registry writes are added to. */
function groupSegments(segments: readonly CassandraSegment[]): CassandraSegment[][] {
  const groups: CassandraSegment[][] = [[]];
  let count = 0;
  for (const segment of segments) {
    const last = groups.at(-1) ?? [];
    if (last.length > 0 && count + segment.writes.length > MAX_WRITES) {
      groups.push([segment]);
      count = segment.writes.length;
    } else {
      last.push(segment);
      count += segment.writes.length;
    }
  }
  return groups;
}

const NOTHING_PREPARED: Preparation = { registryWrites: [] };

async function prepare(
  context: RunContext,
  preflights: CreatePreflights,
  statement: CassandraStatement,
): Promise<Preparation> {
  const { run: step } = statement;
  const preflight = await preflights.next(step);
  if (step.kind === 'ddl') return prepareDdl(context, step, preflight);
  if (step.kind !== 'register') return NOTHING_PREPARED;
  if (step.narrowed) await assertRowsFit(context, step.table, step.narrowed);
  return { registryWrites: [await registryWrite(context, step.table, step.registered)] };
}

async function runStatement(
  context: RunContext,
  statement: CassandraStatement,
  epoch: number,
  prepared: Preparation,
): Promise<void> {
  const { run: step } = statement;
  switch (step.kind) {
    case 'ddl':
      return runDdl(context, step, epoch, prepared);
    case 'raw':
      return runRawStatement(context, step.cql, epoch);
    case 'await':
      return awaitEffect(context, step);
    case 'copy':
      return copyColumn(context, step, epoch);
    case 'fill':
      return fillDefaults(context, step, epoch);
    case 'register':
      // The registry write was part of the batch.
      return;
  }
}

/** Milliseconds since the run began, or since the last read. */
class Stopwatch {
  #since = performance.now();
  read(): number {
    const elapsed = performance.now() - this.#since;
    this.#since = performance.now();
    return elapsed;
  }
}

async function writeSegments(
  context: RunContext,
  segments: readonly CassandraSegment[],
  epoch: number,
  stopwatch: Stopwatch,
  registryWrites: readonly RecordChange[] = [],
): Promise<WrittenValues[]> {
  const { session } = context;
  const writes = segments.flatMap((segment) => segment.writes);
  const needsTime = writes.some(({ record }) => Object.values(record).includes(CLOCK as never));
  const now = needsTime ? await session.clusterTime() : null;
  const resolved = segments.map((segment) => {
    const elapsed = endsElapsed(segment) ? stopwatch.read() : 0;
    return segment.writes.map((one) => ({ one, ...resolveEngineValues(one, now, elapsed) }));
  });
  const changes = mergeChanges(resolved.flat().map(({ one, record }) => recordChange(one, record)));
  const colocated = [...changes.filter(({ location }) => location.inLockPartition), ...registryWrites];
  const others = changes.filter(({ location }) => !location.inLockPartition);
  if (others.length > 0 && !(await isEpochCurrent(session, epoch))) throw lockLostError();
  // Without the lock only the registry is written, for a separate statement.
  const checkedEpoch = epoch === UNLOCKED && writes.length === 0 ? undefined : epoch;
  if (colocated.length > 0 && !(await applyChanges(session, colocated, checkedEpoch))) throw lockLostError();
  for (const one of others) if (!(await applyChanges(session, [one]))) throw lockLostError();
  return resolved.map((segment) => segment.map(({ engine }) => engine));
}

function resolveEngineValues({ record }: RecordWrite, now: Date | null, elapsed: number) {
  const engine: Record<string, Date | number> = {};
  for (const [name, value] of Object.entries(record)) {
    if (value === CLOCK && now) engine[name] = now;
    if (value === ELAPSED) engine[name] = elapsed;
  }
  return { record: { ...record, ...engine }, engine };
}

function recordChange({ definition, version }: RecordWrite, record: Writable<Partial<RecordValues>>): RecordChange {
  const key = record[definition.key] as string;
  return { location: locationOf(definition), key, from: version ?? 0, to: (version ?? 0) + 1, values: record };
}

/** Merges several writes of one record. */
function mergeChanges(changes: readonly RecordChange[]): RecordChange[] {
  const byRecord = new Map<string, RecordChange>();
  for (const one of changes) {
    const id = JSON.stringify([one.location.definition.collection, one.key]);
    const before = byRecord.get(id);
    if (before && before.to !== one.from) throw lockLostError();
    byRecord.set(id, before ? { ...one, from: before.from, values: { ...before.values, ...one.values } } : one);
  }
  return [...byRecord.values()];
}

/** If no server responds, the statement may have been sent before. */
function runError(error: unknown): unknown {
  const svcError = toSvcError(error);
  return isSvcError(svcError) && svcError.code === 'connection_failed' ? outcomeUnknownError(svcError) : svcError;
}
