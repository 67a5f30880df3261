import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { RunOutcome, Segment, Underway } from '../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../core/errors.ts';
import { ELAPSED, type RecordWrite } from '../../../core/records.ts';
import { refusal } from './errors.ts';
import type { Work } from './move.ts';
import { Outsets } from './outsets.ts';
import { perform } from './perform.ts';
import { MOST_PARTS, writeRecords } from './record-writes.ts';
import { stepOf } from './step.ts';

/**
 * Segments in order. Their statements are in no transaction, whatever they say: DynamoDB has nothing of that kind, and
 * this dialect compiles no statement that asks for it. What neighbours write is one transaction, with what the registry
 * says of the statement before and of the one behind: each statement costs one.
 */
export async function runSegments(work: Work, segments: readonly Segment[], underway?: Underway): Promise<RunOutcome> {
  const written: RunOutcome['written'][number][] = [];
  const outsets = new Outsets(work, segments);
  /** Segments whose statements are done and whose writes are not, and what the registry has to say of them. */
  let open: Segment[] = [];
  let done: readonly TransactWriteItem[] = [];
  let began = performance.now();
  const committed = (values: RunOutcome['written'][number]): void => {
    written.push(values);
    underway?.committed(values);
  };
  const flush = async (announcement: readonly TransactWriteItem[] = []): Promise<void> => {
    const writes = open.flatMap((segment) => segment.writes);
    const others = [...done, ...announcement];
    const values = writes.length + others.length > 0 ? await writeRecords(work, writes, began, others) : [];
    if (writes.some(hasElapsed)) began = performance.now();
    const through = open;
    open = [];
    done = [];
    for (const segment of through) committed(values.splice(0, segment.writes.length));
  };
  const failure = (error: unknown, statement?: number): RunOutcome => ({
    committed: written.length,
    written,
    failure: { statement, error: lost(error) },
  });
  for (const [at, segment] of segments.entries()) {
    if (underway?.goesOn(at) === false) break;
    for (const [index, statement] of segment.statements.entries()) {
      try {
        if (outsets.returns) await flush();
      } catch (error) {
        return failure(error);
      }
      const outset = await settledOf(outsets.next());
      try {
        await flush(outset.status === 'fulfilled' ? outset.value?.announcement : []);
      } catch (error) {
        return failure(error);
      }
      try {
        if (outset.status === 'rejected') throw outset.reason;
        done = await perform(work, stepOf(statement), outset.value);
      } catch (error) {
        return failure(error, index);
      }
    }
    if (open.length === 0 && segment.writes.length === 0) {
      // Done whatever becomes of the writes behind it.
      committed([]);
      continue;
    }
    try {
      if (!fit(open, segment)) await flush();
    } catch (error) {
      return failure(error);
    }
    open.push(segment);
  }
  try {
    await flush();
  } catch (error) {
    return failure(error);
  }
  return { committed: written.length, written };
}

const settledOf = async <T>(one: Promise<T>): Promise<PromiseSettledResult<T>> => {
  const [outcome] = await Promise.allSettled([one]);
  return outcome;
};

/** Writes of one transaction are each to another record. */
function fit(open: readonly Segment[], next: Segment): boolean {
  const there = open.flatMap((segment) => segment.writes);
  if (there.length + next.writes.length > MOST_PARTS) return open.length === 0;
  const keys = new Set(there.map(keyOf));
  return !next.writes.some((write) => keys.has(keyOf(write)));
}

const keyOf = ({ definition, record }: RecordWrite): string =>
  JSON.stringify([definition.collection, record[definition.key]]);

const hasElapsed = ({ record }: RecordWrite): boolean => Object.values(record).includes(ELAPSED);

/** A server that was there and is no more: the next run finds out how far this one came. */
function lost(error: unknown): unknown {
  const told = refusal(error);
  if (!isSvcError(told) || told.code !== 'connection_failed') return told;
  return new SvcError('connection_lost', 'The connection to DynamoDB was lost.', {
    ...(told.why !== undefined && { why: told.why }),
    next: ['Run the command again: it finds out what was done.'],
    cause: told.cause,
  });
}
