import { SvcError } from '../../core/errors.ts';
import type { PlannedMigration } from '../../core/migration/plan.ts';
import { canAsk, confirm } from '../ask.ts';
import { oneLine } from '../print.ts';
import type { DatabaseCommand } from './command.ts';
import { counted } from './words.ts';

export interface Consent {
  readonly yes: boolean;
  readonly allowDestructive: boolean;
}

/** A statement that loses data, as `--json` names it. */
export interface Destroyed {
  readonly tag: string;
  readonly statement: string;
}

export function destroyedBy(plan: readonly PlannedMigration[]): Destroyed[] {
  return plan.flatMap(({ tag, statements }) =>
    statements.filter(({ destructive }) => destructive).map(({ text }) => ({ tag, statement: text })),
  );
}

/**
 * What is asked before pending migrations run; undefined where nothing is to be asked, which spares a second look at
 * the plan. `--yes` answers questions and lets into a protected environment; only `--allow-destructive` allows the
 * loss of data.
 */
export async function consentToMigrate(
  command: DatabaseCommand,
  label: string,
  { yes, allowDestructive }: Consent,
): Promise<((plan: readonly PlannedMigration[]) => Promise<void>) | undefined> {
  const guarded = (await command.runtime()).protectedEnv && !yes;
  const asking = canAsk(command) && !yes;
  if (!guarded && (allowDestructive || !asking)) return undefined;
  return async (plan) => {
    await command.refuseProtected(yes);
    const lost = destroyedBy(plan).map(({ tag, statement }) => `${tag}: ${oneLine(statement)}`);
    if (lost.length === 0 || allowDestructive) return;
    command.note(`These destroy data in ${label}:`);
    for (const line of lost) command.note(`  ${line}`);
    const message = `${counted(lost.length, 'statement')} destroy${lost.length === 1 ? 's' : ''} data. Go on?`;
    if (!(await confirm(command, { message, flag: 'svc db migrate --allow-destructive' }))) throw declined();
  };
}

/** Shows what will be undone, and asks where there is somebody to ask. */
export function consentToRollback(command: DatabaseCommand, label: string, yes: boolean) {
  return async (plan: readonly PlannedMigration[]): Promise<void> => {
    await command.refuseProtected(yes);
    command.note(`Will be undone in ${label}, in this order:`);
    for (const { tag, origin, statements } of plan) {
      command.note(`  ${tag}${origin === 'file' ? '' : `  (made by the ${origin})`}`);
      for (const { text } of statements.filter(({ destructive }) => destructive)) {
        command.note(`    ${command.context.colors.stderr.yellow('loses data')}  ${oneLine(text)}`);
      }
    }
    if (yes || !canAsk(command)) return;
    const message = `Undo ${counted(plan.length, 'migration')} in ${label}?`;
    if (!(await confirm(command, { message, flag: 'svc db migrate rollback --yes' }))) throw declined();
  };
}

export function declined(): SvcError {
  return new SvcError('declined', 'The answer was no.', { state: 'Nothing was changed.' });
}
