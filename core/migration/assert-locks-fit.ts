import { SvcError } from '../errors.ts';
import type { PlannedMigration } from './planned-migration.ts';
import type { Target } from './target.ts';

/** Any server has room for so many. */
const ALWAYS_FITS = 500;
/** Those of the history row and the migration lock. */
const OF_HISTORY = 10;

/** Throws if the server cannot hold the locks that one of the migrations needs in a transaction. Nothing has run yet. */
export async function assertLocksFit({ connection }: Target, planned: readonly PlannedMigration[]): Promise<void> {
  if (!connection.lockShortage) return;
  for (const { tag, origin, locks = 0 } of planned) {
    if (locks <= ALWAYS_FITS) continue;
    const shortage = await connection.lockShortage(locks + OF_HISTORY);
    if (!shortage) continue;
    throw new SvcError('migration_too_large', `"${tag}" needs about ${locks} locks in one transaction.`, {
      why: shortage.why,
      state: 'Nothing was changed.',
      next: [
        origin === 'file'
          ? 'Split it into several migrations. If it is applied nowhere yet: remove its file, then: svc db schema generate    writes several smaller ones'
          : 'Split it into several migrations.',
        ...shortage.next,
      ],
      details: { tag, locks },
    });
  }
}
