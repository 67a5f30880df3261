import { SvcError } from '../errors.ts';
import type { LedgerEntry, LedgerRow } from './ledger.ts';

/** A migration that stopped half-way and is not to be touched before a person has looked. */
export function halfDone({ row }: LedgerEntry): SvcError {
  const back = isWayBack(row);
  return new SvcError(
    'migration_half_done',
    `The ${back ? 'rollback of' : 'migration'} "${row.tag}" stopped half-way.`,
    {
      ...(row.error !== null && { why: row.error }),
      state: `${row.step} of ${row.steps} steps are committed.`,
      next: resolutions(row, back),
      details: { tag: row.tag, step: row.step, steps: row.steps },
    },
  );
}

/** What a person can say of it: nothing is left to run of one that was marked as failed when it was through. */
export function resolutions(
  { tag, step, steps }: { readonly tag: string; readonly step: number; readonly steps: number },
  back: boolean,
): readonly string[] {
  const through = step >= steps;
  const [finished, undone] = [through ? 'it is applied' : 'the rest was done by hand', 'the steps were undone by hand'];
  return [
    ...(through ? [] : [`svc db migrate resolve ${tag} --retry        run the rest`]),
    `svc db migrate resolve ${tag} --applied      ${back ? undone : finished}`,
    `svc db migrate resolve ${tag} --rolled-back  ${back ? finished : undone}`,
  ];
}

/** A rollback would be asked about one plan and run another: where this one ends is not known before it is there. */
export function underway({ row }: LedgerEntry): SvcError {
  const { tag, step, steps } = row;
  return new SvcError('migration_half_done', `The migration "${tag}" is being applied, or was interrupted.`, {
    why: 'What is to be rolled back is known when it is through.',
    state: `Nothing was changed; ${step} of ${steps} of its steps are committed.`,
    next: [
      'svc db migrate    waits for it, or runs the rest',
      `svc db migrate resolve ${tag} --rolled-back    the steps were undone by hand`,
    ],
    details: { tag, step, steps },
  });
}

/** `-n` of a rollback beside one that was interrupted: it may be the same command, typed again. */
export function countedBefore({ row }: LedgerEntry): SvcError {
  return new SvcError('migration_half_done', `The rollback of "${row.tag}" is not through, or was interrupted.`, {
    why: '-n counts from the end of what is applied: what that rollback has taken back would be counted anew.',
    state: 'Nothing was changed.',
    next: [
      'svc db migrate rollback    finishes it, and takes back nothing else',
      'svc db migrate rollback --to <tag>    finishes it, and takes back all after that one',
    ],
    details: { tag: row.tag },
  });
}

/** It was completed before: only a rollback leaves the row of such a one with steps to go. */
export function isWayBack({ applied_at, rolled_back_at, step, steps }: LedgerRow): boolean {
  return applied_at !== null && rolled_back_at === null && step < steps;
}
