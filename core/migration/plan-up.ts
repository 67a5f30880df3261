import { isSvcError, SvcError } from '../errors.ts';
import type { MutableSchema } from '../schema/mutable-schema.ts';
import { CreatedTables } from './affected-collections.ts';
import type { History, HistoryRecord } from './history.ts';
import { keeping, type Replace } from './keep.ts';
import type { Migration } from './migration.ts';
import { appliedMigrations, assertOrder, fitsOnlyInTagOrder } from './order.ts';
import { modelForPlanning, planMigration } from './plan.ts';
import { destructiveStatements, type PlannedMigration } from './planned-migration.ts';
import { assertReconciled, type DefinedMigration } from './reconcile.ts';
import type { Target } from './target.ts';

export interface PlanUpOptions {
  /** The last migration to apply. */
  readonly to?: string;
  /** Applies those that complete an earlier one, which other runs leave. */
  readonly contract?: boolean;
  readonly allowDestructive?: boolean;
  /** Keeps what the migrations drop for this many milliseconds, under another name. Default: as the target says. */
  readonly keepMs?: number | undefined;
  /** Called with the plan before the lock is taken; throws to stop the run, also for destructive statements. */
  readonly confirm?: (plan: readonly PlannedMigration[]) => Promise<void>;
}

/**
 * Compiles the pending migrations in tag order. A migration in `rolledBack` is one whose rollback was interrupted and
 * finished by the same run: neither it nor any later migration is applied.
 */
export async function planUp(
  target: Target,
  history: History,
  defined: readonly DefinedMigration[],
  options: PlanUpOptions,
  rolledBack: ReadonlySet<string>,
): Promise<PlannedMigration[]> {
  const reconciled = await assertReconciled(target.connection, defined, history);
  const wanted = wantedBy(reconciled.pending, options);
  const end = wanted.findIndex(({ tag }) => rolledBack.has(tag));
  const pending = end < 0 ? wanted : wanted.slice(0, end);
  if (pending.length === 0) return [];
  const completed = await appliedMigrations(target.connection, history);
  const migrations = pending.map(({ migration }) => migration);
  const up = migrations.flatMap((one) => one.up);
  const model = await modelForPlanning(target, history, up);
  const created = new CreatedTables();
  const keepOf = await keeping(target, history, 'file', migrations, options.keepMs);
  const planned: PlannedMigration[] = [];
  const { name: dialect } = target.dialect;
  try {
    for (const one of pending) {
      const replace = keepOf?.(one.migration);
      planned.push(
        await planPending(target, one, model, created, history, replace).catch((error) => {
          throw afterContract(error, one, reconciled.pending, options);
        }),
      );
    }
  } catch (error) {
    if (isSvcError(error) && fitsOnlyInTagOrder(completed, migrations, dialect)) {
      assertOrder(completed, migrations, dialect);
    }
    throw error;
  }
  assertOrder(completed, migrations, dialect);
  if (!options.allowDestructive && !options.confirm && !target.approver) assertNotDestructive(planned);
  return planned;
}

/** The pending migrations that a run applies. */
export function wantedBy(
  pending: readonly DefinedMigration[],
  { to, contract = false }: Pick<PlanUpOptions, 'to' | 'contract'>,
): readonly DefinedMigration[] {
  const waiting = new Set(contract ? pending.map(({ tag }) => tag) : []);
  return upTo(pending, to).filter(({ migration: { contracts } }) =>
    contract ? contracts !== undefined && !waiting.has(contracts) : contracts === undefined,
  );
}

/** The pending migrations that wait for `svc db migrate contract`. */
export const contractsOf = (pending: readonly DefinedMigration[]): readonly DefinedMigration[] =>
  pending.filter(({ migration }) => migration.contracts !== undefined);

/** An error because of a name that an earlier migration drops, which waits for `svc db migrate contract`. */
function afterContract(
  error: unknown,
  { tag }: DefinedMigration,
  pending: readonly DefinedMigration[],
  { contract }: PlanUpOptions,
): unknown {
  const waiting = contract ? undefined : contractsOf(pending).find((one) => one.tag < tag);
  if (!waiting || !isSvcError(error) || !(error.code === 'field_in_use' || error.code === 'field_exists')) return error;
  const first = pending.find((one) => one.tag === waiting.migration.contracts);
  return error.with({
    next: [
      first
        ? `svc db migrate --to ${first.tag}, then svc db migrate contract, then svc db migrate`
        : 'svc db migrate contract, then svc db migrate',
      `Or, if every environment has applied "${waiting.tag}", remove "contracts" from it: svc db migrate then applies it before this one.`,
    ],
  });
}

/** The pending migrations up to and including this tag. */
export function upTo(pending: readonly DefinedMigration[], to: string | undefined): readonly DefinedMigration[] {
  return to === undefined ? pending : pending.filter(({ tag }) => tag <= to);
}

async function planPending(
  target: Target,
  { migration, checksum }: DefinedMigration,
  model: MutableSchema,
  created: CreatedTables,
  history: History,
  replace: Replace | undefined,
): Promise<PlannedMigration> {
  if (migration.up.length === 0) {
    throw new SvcError('migration_invalid', `The migration "${migration.tag}" has no operations yet.`, {
      why: 'Once applied, its file could no longer be edited.',
      state: 'Nothing was changed.',
      next: ['Write its up and down, or remove the file.'],
    });
  }
  try {
    return await planMigration(target, migration, 'up', 'file', model, { created, knownChecksum: checksum, replace });
  } catch (error) {
    const creator = isSvcError(error) && error.code === 'collection_exists' ? creatorOf(migration, history) : undefined;
    if (!creator) throw error;
    throw new SvcError(
      'origin_conflict',
      `"${migration.tag}" creates a table that already exists: "${creator.row.tag}" created it through the API.`,
      {
        state: 'Nothing was changed.',
        next: [
          `svc db migrate export    writes the API's migrations as files; then remove the duplicates from ${migration.tag}`,
        ],
        cause: error,
      },
    );
  }
}

/** The API or engine migration that created a table which the file creates too. */
function creatorOf(file: Migration, history: History): HistoryRecord | undefined {
  const wanted = new Set(
    file.up.flatMap((operation) => (operation.type === 'createCollection' ? [operation.name] : [])),
  );
  return history
    .completed()
    .find(
      ({ row, migration }) =>
        row.origin !== 'file' &&
        migration?.up.some((operation) => operation.type === 'createCollection' && wanted.has(operation.name)),
    );
}

function assertNotDestructive(planned: readonly PlannedMigration[]): void {
  const statements = planned.flatMap((one) => destructiveStatements(one).map((text) => `${one.tag}: ${text}`));
  if (statements.length === 0) return;
  throw new SvcError(
    'destructive',
    `${statements.length} pending ${statements.length === 1 ? 'statement destroys' : 'statements destroy'} data.`,
    {
      why: statements.slice(0, 3).join('; '),
      state: 'Nothing was changed.',
      next: [
        'Preview first: svc db migrate --dry-run',
        'Then: svc db migrate --allow-destructive',
        'Or permit it in the migration: "allow": ["destructive"]',
      ],
      details: { statements },
    },
  );
}
