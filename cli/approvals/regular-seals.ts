import { setTimeout as pause } from 'node:timers/promises';
import { parseDuration } from '../../config/load/approval-rules.ts';
import type { Runtime } from '../../config/load/runtime.ts';
import { openSealer } from '../../config/sdk/seals.ts';
import type { SealReport } from '../../core/approval/seal/sealer.ts';
import { isSvcError, type SvcError } from '../../core/errors.ts';

/** What became of an attempt to seal. The same failure is reported once. */
export type SealEvent =
  | ({ readonly event: 'sealed' } & SealReport)
  | { readonly event: 'seal_failed'; readonly error: SvcError };

const DEFAULT_INTERVAL = '5m';

/**
 * Opens the sealer of `approvals.seals`, so that a mistake in the configuration is thrown. The result seals until the
 * signal aborts, at intervals, and once more then. Undefined without that setting.
 */
export async function regularSeals(
  runtime: Runtime,
): Promise<((signal: AbortSignal, report: (event: SealEvent) => void) => Promise<void>) | undefined> {
  const { seals } = runtime.config.approvals ?? {};
  if (!seals) return undefined;
  const sealer = await openSealer(runtime);
  const interval = parseDuration(seals.every ?? DEFAULT_INTERVAL);
  return async (signal, report) => {
    let failed: string | undefined;
    const seal = async () => {
      try {
        const done = await sealer.seal();
        failed = undefined;
        if (done.seals > 0) report({ event: 'sealed', ...done });
      } catch (error) {
        if (!isSvcError(error)) throw error;
        const text = `${error.code} ${error.message}`;
        if (text !== failed) report({ event: 'seal_failed', error });
        failed = text;
      }
    };
    while (!signal.aborted) {
      await seal();
      await pause(interval, undefined, { signal }).catch(() => undefined);
    }
    await seal();
  };
}
