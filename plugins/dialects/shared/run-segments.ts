import type { RunObserver, RunOutcome, Segment } from '../../../core/dialect.ts';
import { isSvcError } from '../../../core/errors.ts';
import { endsElapsed, type RecordWrite } from '../../../core/records.ts';

/** How an engine without transactional DDL executes the parts of a segment. */
export interface SegmentSteps<Step> {
  runStep(step: Step): Promise<void>;
  /** Writes all records or none. Returns the values of CLOCK and ELAPSED per write. Throws `lock_lost`. */
  writeRecords(writes: readonly RecordWrite[], elapsedMs: number): Promise<RunOutcome['written'][number]>;
  toSvcError(error: unknown): unknown;
}

/**
 * `Connection.run` for an engine without transactional DDL: one segment after the other, each statement on its own. The
 * dialect sets `Capabilities.runsSegmentsSingly`.
 */
export async function runSegments<Step>(
  { runStep, writeRecords, toSvcError }: SegmentSteps<Step>,
  segments: readonly Segment<Step>[],
  tookMs = 0,
  observer?: RunObserver,
): Promise<RunOutcome> {
  const written: RunOutcome['written'][number][] = [];
  let startedAt = performance.now() - tookMs;
  for (const [at, segment] of segments.entries()) {
    if (observer?.shouldContinue(at) === false) break;
    let statement: number | undefined;
    let values: RunOutcome['written'][number] = [];
    try {
      for (const [index, { run }] of segment.statements.entries()) {
        statement = index;
        await runStep(run);
      }
      statement = undefined;
      const elapsedMs = performance.now() - startedAt;
      if (segment.writes.length > 0) values = await writeRecords(segment.writes, elapsedMs);
    } catch (thrown) {
      const error = toSvcError(thrown);
      // A table of another program was not changed.
      const isForeign = isSvcError(error) && error.code === 'collection_exists';
      const rolledBack = (statement === undefined || isForeign) && { rolledBack: true };
      return { committed: written.length, written, failure: { statement, error, ...rolledBack } };
    }
    if (endsElapsed(segment)) startedAt = performance.now();
    written.push(values);
    observer?.onCommitted(values);
  }
  return { committed: written.length, written };
}
