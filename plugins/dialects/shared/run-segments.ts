import type { RunObserver, RunOutcome, Segment } from '../../../core/dialect.ts';
import { isSvcError } from '../../../core/errors.ts';
import { endsElapsed, type RecordWrite } from '../../../core/records.ts';
import type { SchemaModel } from '../../../core/schema/model.ts';

/** How an engine executes the parts of a segment. */
export interface SegmentSteps<Step> {
  runStep(step: Step): Promise<void>;
  /** Writes all records or none. Returns the values of CLOCK and ELAPSED per write. Throws `lock_lost`. */
  writeRecords(writes: readonly RecordWrite[], elapsedMs: number): Promise<RunOutcome['written'][number]>;
  toSvcError(error: unknown): unknown;
  /** Whether an error of a statement, as `toSvcError` returns it, means that the statement changed nothing. */
  isRefusal?(error: unknown, step: Step): boolean;
  /**
   * For an engine that rolls DDL back: runs `work` in a transaction, with functions that act in it. Without it, each
   * statement of a segment is on its own.
   */
  transaction?<T>(work: (steps: StepsInTransaction<Step>) => Promise<T>): Promise<T>;
}

export interface StepsInTransaction<Step> extends Pick<SegmentSteps<Step>, 'runStep' | 'writeRecords'> {
  /** Reads the catalog as the transaction sees it. */
  introspect(collections: readonly string[]): Promise<SchemaModel>;
}

/** `Connection.run`: one segment after the other. The dialect sets `Capabilities.runsSegmentsSingly`. */
export async function runSegments<Step>(
  steps: SegmentSteps<Step>,
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
    let refusal: unknown;
    const transaction = segment.transactional ? steps.transaction : undefined;
    const execute = async (within: SegmentSteps<Step> | StepsInTransaction<Step>) => {
      for (const [index, { run }] of segment.statements.entries()) {
        statement = index;
        await within.runStep(run);
      }
      statement = undefined;
      if ('introspect' in within)
        await segment
          .verify?.((names) => within.introspect(names))
          .catch((error: unknown) => {
            refusal = error;
            throw error;
          });
      return segment.writes.length > 0 ? within.writeRecords(segment.writes, performance.now() - startedAt) : [];
    };
    try {
      values = await (transaction ? transaction(execute) : execute(steps));
    } catch (thrown) {
      // `verify` is not of the engine.
      const error = thrown === refusal ? thrown : steps.toSvcError(thrown);
      const step = segment.statements[statement ?? -1]?.run;
      // A table of another program was not changed.
      const isForeign = isSvcError(error) && error.code === 'collection_exists';
      const isRefused = isForeign || (step !== undefined && steps.isRefusal?.(error, step));
      const rolledBack = (transaction || statement === undefined || isRefused) && { rolledBack: true };
      return { committed: written.length, written, failure: { statement, error, ...rolledBack } };
    }
    if (endsElapsed(segment)) startedAt = performance.now();
    written.push(values);
    observer?.onCommitted(values);
  }
  return { committed: written.length, written };
}
