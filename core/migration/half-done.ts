import { SvcError } from '../errors.ts';
import type { LedgerEntry, LedgerRow } from './ledger.ts';

/** A migration that stopped half-way and is not to be touched before a person has looked. */
export function halfDone({ row }: LedgerEntry): SvcError {
  const back = isWayBack(row);
  const [finished, undone] = ['the rest was done by hand', 'the steps were undone by hand'];
  return new SvcError(
    'migration_half_done',
    `The ${back ? 'rollback of' : 'migration'} "${row.tag}" stopped half-way.`,
    {
      ...(row.error !== null && { why: row.error }),
      state: `${row.step} of ${row.steps} steps are committed.`,
      next: [
        `svc db migrate resolve ${row.tag} --retry        run the rest`,
        `svc db migrate resolve ${row.tag} --applied      ${back ? undone : finished}`,
        `svc db migrate resolve ${row.tag} --rolled-back  ${back ? finished : undone}`,
      ],
      details: { tag: row.tag, step: row.step, steps: row.steps },
    },
  );
}

/** It was completed before: only a rollback leaves the row of such a one with steps to go. */
function isWayBack({ applied_at, rolled_back_at, step, steps }: LedgerRow): boolean {
  return applied_at !== null && rolled_back_at === null && step < steps;
}
