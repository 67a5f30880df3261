import type { Runtime } from '../../config/load/runtime.ts';
import { SvcError } from '../../core/errors.ts';
import { mayDestroy } from '../../core/migration/plan-description.ts';
import { type PlannedMigration, destructiveStatements as textsOf } from '../../core/migration/planned-migration.ts';
import type { RollbackOptions } from '../../core/migration/preview.ts';
import { assertNothingLost } from '../../core/migration/rollback-losses.ts';
import type { Target } from '../../core/migration/target.ts';
import { assertNoAgent, restrictedAgent } from '../agent.ts';
import { oneLine, plural } from '../output.ts';
import { canPrompt, confirm } from '../prompt.ts';
import type { DatabaseCommand } from './command.ts';

export interface ConsentFlags {
  readonly yes: boolean;
  readonly allowDestructive: boolean;
}

/** A statement that destroys data, as in the `--json` output. */
export interface DestructiveStatement {
  readonly tag: string;
  readonly statement: string;
}

export function destructiveStatements(plan: readonly PlannedMigration[]): DestructiveStatement[] {
  return plan.flatMap((one) => textsOf(one).map((statement) => ({ tag: one.tag, statement })));
}

/**
 * Returns the check to run on the plan before migrating, or undefined if none is needed. `--yes` confirms prompts and
 * permits a protected environment; only `--allow-destructive` permits data loss.
 */
export async function consentToMigrate(
  command: DatabaseCommand,
  label: string,
  { yes, allowDestructive }: ConsentFlags,
): Promise<((plan: readonly PlannedMigration[]) => Promise<void>) | undefined> {
  const runtime = await command.runtime();
  const { protectedEnv, config, env } = runtime;
  const isAgent = restrictedAgent(runtime) !== undefined;
  const isGuarded = (protectedEnv && !yes) || isAgent;
  // Others are asked, in an environment with `approval`.
  const isApproved = config.environments?.[env]?.approval !== undefined;
  const prompts = canPrompt(command) && !yes && !isApproved;
  if (!isGuarded && (allowDestructive || !prompts)) return undefined;
  return async (plan) => {
    await command.assertNotProtected(yes);
    assertMayDestroy(runtime, plan);
    const lost = destructiveStatements(plan).map(({ tag, statement }) => `${tag}: ${oneLine(statement)}`);
    if (lost.length === 0 || allowDestructive || isApproved) return;
    command.note(`These statements destroy data in ${label}:`);
    for (const line of lost) command.note(`  ${line}`);
    const message = `${plural(lost.length, 'statement')} destroy${lost.length === 1 ? 's' : ''} data. Continue?`;
    if (!(await confirm(command, { message, flag: `svc ${command.path.join(' ')} --allow-destructive` })))
      throw declined();
  };
}

/**
 * The checks of a rollback. `confirm` runs before the lock: it shows the plan and, on a terminal, prompts for confirmation.
 * Without a prompt, only `--allow-destructive` permits the loss of rows; they are counted again under the lock, because
 * a run may wait for it for a long time.
 */
export function consentToRollback(
  command: DatabaseCommand,
  label: string,
  target: Target,
  { yes, allowDestructive }: ConsentFlags,
): Required<Pick<RollbackOptions, 'confirm' | 'assertAllowed'>> {
  const asks = !yes && canPrompt(command);
  const assertAllowed = async (plan: readonly PlannedMigration[]) => {
    if (!asks && !allowDestructive && !target.approver) await assertNothingLost(target, plan);
  };
  return {
    assertAllowed,
    async confirm(plan) {
      await command.assertNotProtected(yes);
      assertMayDestroy(await command.runtime(), plan);
      command.note(`These migrations will be rolled back in ${label}, in this order:`);
      for (const { tag, origin, statements } of plan) {
        command.note(`  ${tag}${origin === 'file' ? '' : `  (created by the ${origin})`}`);
        for (const { text } of statements.filter(({ destructive }) => destructive)) {
          command.note(`    ${command.context.colors.stderr.yellow('loses data')}  ${oneLine(text)}`);
        }
      }
      await assertAllowed(plan);
      if (!asks) return;
      const message = `Roll back ${plural(plan.length, 'migration')} in ${label}?`;
      if (!(await confirm(command, { message, flag: 'svc db migrate rollback --yes' }))) throw declined();
    },
  };
}

/** Whatever a flag or a migration permits: an agent destroys nothing by itself. */
function assertMayDestroy(runtime: Runtime, plan: readonly PlannedMigration[]): void {
  if (plan.some(mayDestroy)) assertNoAgent(runtime, 'destroy data', true);
}

function declined(): SvcError {
  return new SvcError('declined', 'The command was not confirmed.', { state: 'Nothing was changed.' });
}
