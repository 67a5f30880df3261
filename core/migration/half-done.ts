import { SvcError } from '../errors.ts';
import type { LedgerEntry } from './ledger.ts';

/** A migration that stopped half-way and is not to be touched before a person has looked. */
export function halfDone({ row }: LedgerEntry): SvcError {
  return new SvcError('migration_half_done', `The migration "${row.tag}" stopped half-way.`, {
    ...(row.error !== null && { why: row.error }),
    state: `${row.step} of ${row.steps} steps are committed.`,
    next: [
      `svc db migrate resolve ${row.tag} --retry        run the rest`,
      `svc db migrate resolve ${row.tag} --applied      the rest was done by hand`,
      `svc db migrate resolve ${row.tag} --rolled-back  the steps were undone by hand`,
    ],
    details: { tag: row.tag, step: row.step, steps: row.steps },
  });
}
