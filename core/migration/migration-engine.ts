import type { ErrorCode } from '../error-codes.ts';
import { SvcError } from '../errors.ts';
import { isPlainObject } from '../json.ts';
import type { Shape } from '../validate-shape.ts';
import type { Widened } from '../widened.ts';
import { deepCopy, validatedArguments } from './arguments.ts';
import { assertKeepsEarlier } from './assert-keeps-earlier.ts';
import { assertDatabaseOwner, History, type HistoryRecord } from './history.ts';
import type { HistoryOrigin, HistoryStatus } from './history-table.ts';
import { keeping } from './keep.ts';
import { readKept } from './kept.ts';
import { withRecoveredHistory } from './lock-session.ts';
import { checksum, type Migration } from './migration.ts';
import { modelForPlanning, planMigration } from './plan.ts';
import { reviewBeforeLock } from './plan-approval.ts';
import { planOneRollback } from './plan-down.ts';
import type { PlannedMigration } from './planned-migration.ts';
import { assertRowsUnchanged } from './reconcile.ts';
import { RESOLUTIONS, type Resolution, type ResolveReport, resolveMigration } from './resolve.ts';
import { type EngineResult, runMigration } from './runner.ts';
import type { Target } from './target.ts';
import { migrationProblems } from './validate-migration.ts';

/** An applied migration. */
export interface HistoryEntry {
  readonly tag: string;
  readonly name: string;
  readonly appliedAt: Date;
  readonly checksum: string;
  readonly migration: Migration;
  /** Order of application. */
  readonly seq: number;
  readonly origin: HistoryOrigin;
  readonly status: HistoryStatus;
}

/** A row of the history with any status. `appliedAt` is absent if the migration was never completely applied. */
export type AnyHistoryEntry = Omit<HistoryEntry, 'appliedAt'> & Partial<Pick<HistoryEntry, 'appliedAt'>>;

export interface MigrationStatus {
  readonly total: number;
  readonly completed: number;
  readonly pending: number;
  /** The last applied migration of the whole history, not only of those that are defined. */
  readonly lastApplied?: HistoryEntry;
  readonly pendingMigrations: readonly Migration[];
}

/** Applies and rolls back migrations of one database. Every change takes the lock, so engines exclude one another. */
export class MigrationEngine {
  readonly #target: Target;

  /** Accepts the return value of `db.getAdapter()`. */
  constructor(target: Target) {
    const given: unknown = target;
    if (!isPlainObject(given) || !given.connection || !given.dialect || !given.hooks) {
      throw new SvcError('database_unknown', 'A MigrationEngine needs the adapter of a connected database.', {
        next: ['new MigrationEngine(db.getAdapter())'],
      });
    }
    this.#target = target;
  }

  /** Applies the migration, or returns `skipped` if it is already applied. Throws `migration_edited` if another has its tag. */
  async up<const Given>(migration: Widened<Given, Migration>): Promise<EngineResult> {
    const copy = validatedMigration(migration);
    /** Undefined if it is applied already. */
    const plan = async (history: History): Promise<PlannedMigration | undefined> => {
      const known = history.records.get(copy.tag);
      if (known?.row.status === 'completed') {
        await assertSameMigration(this.#target, history, copy, known);
        return undefined;
      }
      const model = await modelForPlanning(this.#target, history, copy.up);
      const keepOf = await keeping(this.#target, history, 'engine', [copy]);
      return planMigration(this.#target, copy, 'up', 'engine', model, { replace: keepOf?.(copy) });
    };
    const reviewed = await reviewBeforeLock(this.#target, 'up', plan);
    return withRecoveredHistory(this.#target, { plan: reviewed }, async (run) => {
      const planned = await plan(run.history);
      if (!planned) return { tag: copy.tag, status: 'skipped', durationMs: 0, statements: [] };
      return runMigration(run, planned);
    });
  }

  /**
   * Runs the migration's `down`. A migration that is not the last can be rolled back only if the result is the schema
   * that the others produce; otherwise throws `not_reversible_now`.
   */
  async down<const Given>(migration: Widened<Given, Migration>): Promise<EngineResult> {
    const copy = validatedMigration(migration);
    const plan = async (history: History): Promise<PlannedMigration> => {
      const known = history.records.get(copy.tag);
      if (known?.row.status !== 'completed') {
        throw new SvcError('migration_not_applied', `The migration "${copy.tag}" is not applied.`, {
          state: 'Nothing was changed.',
          next: ['engine.getHistory() returns the applied migrations.'],
        });
      }
      await assertSameMigration(this.#target, history, copy, known);
      const completed = await history.completedMigrations(this.#target.connection);
      const model = await modelForPlanning(this.#target, history, copy.down);
      const all = completed.map((record) => record.migration);
      const planned = await planOneRollback(this.#target, copy, known.row, model, {
        completed: all,
        kept: await readKept(this.#target),
      });
      assertKeepsEarlier([planned], all, this.#target.dialect.name);
      return planned;
    };
    const reviewed = await reviewBeforeLock(this.#target, 'down', plan);
    return withRecoveredHistory(this.#target, { plan: reviewed }, async (run) =>
      runMigration(run, await plan(run.history)),
    );
  }

  /** Returns the completed migrations in the order of application; with `all` every row of the history. */
  async getHistory(options?: { readonly all?: false }): Promise<HistoryEntry[]>;
  async getHistory(options: { readonly all?: boolean }): Promise<AnyHistoryEntry[]>;
  async getHistory(options: { readonly all?: boolean } = {}): Promise<AnyHistoryEntry[]> {
    const { all } = validatedArguments<{ options: { readonly all?: boolean } }>(
      'getHistory',
      { options },
      { options: HISTORY_OPTIONS },
      { code: invalidCode },
    ).options;
    const entries = await this.#entries();
    return all ? entries : entries.filter(isCompleted);
  }

  /** Throws `tag_taken` if two of the migrations have the same tag. */
  async getStatus<const Given>(options: {
    readonly definedMigrations: Widened<Given, readonly Migration[]>;
  }): Promise<MigrationStatus> {
    const defined: unknown = options?.definedMigrations;
    if (!Array.isArray(defined)) {
      throw new SvcError('migration_invalid', 'getStatus needs the defined migrations.', {
        next: ['engine.getStatus({ definedMigrations: [migration] })'],
      });
    }
    const definedMigrations: readonly Migration[] = defined.map(validatedMigration);
    assertUniqueTags(definedMigrations);
    const completed = await this.getHistory();
    const completedTags = new Set(completed.map(({ tag }) => tag));
    const pendingMigrations = definedMigrations
      .filter(({ tag }) => !completedTags.has(tag))
      .sort((a, b) => (a.tag < b.tag ? -1 : 1));
    const lastApplied = completed.at(-1);
    return {
      total: definedMigrations.length,
      completed: definedMigrations.length - pendingMigrations.length,
      pending: pendingMigrations.length,
      ...(lastApplied && { lastApplied }),
      pendingMigrations,
    };
  }

  /** Applies a person's decision about a migration that stopped halfway. Throws `migration_invalid` for another action. */
  async resolve(tag: string, action: Resolution): Promise<ResolveReport> {
    const given = validatedArguments<{ tag: string; action: Resolution }>(
      'engine.resolve',
      { tag, action },
      { tag: 'string', action: { oneOf: RESOLUTIONS } },
      { required: ['tag', 'action'], code: invalidCode },
    );
    return resolveMigration(this.#target, given.tag, given.action);
  }

  async #entries(): Promise<AnyHistoryEntry[]> {
    await assertDatabaseOwner(this.#target);
    const records = await History.readWithMigrations(this.#target.connection);
    return records.map(({ row, migration }) => ({
      tag: row.tag,
      name: row.name,
      ...(row.applied_at && { appliedAt: row.applied_at }),
      checksum: row.checksum,
      migration,
      seq: row.seq,
      origin: row.origin,
      status: row.status,
    }));
  }
}

function isCompleted(entry: AnyHistoryEntry): entry is HistoryEntry {
  return entry.status === 'completed' && entry.appliedAt !== undefined;
}

const HISTORY_OPTIONS: Shape = { properties: { all: 'boolean' } };
const invalidCode = (): ErrorCode => 'migration_invalid';

/** A valid copy, which the caller cannot change during the run. */
function validatedMigration(migration: unknown): Migration {
  const problems = migrationProblems(migration);
  if (problems.length === 0) return deepCopy(migration as Migration, 'The engine', 'migration_invalid');
  throw new SvcError('migration_invalid', 'The migration is not valid.', {
    why: problems.join(' '),
    state: 'Nothing was changed.',
  });
}

function assertUniqueTags(migrations: readonly Migration[]): void {
  const tags = new Set<string>();
  for (const { tag } of migrations) {
    if (tags.has(tag)) {
      throw new SvcError('tag_taken', `Two of the migrations have the tag "${tag}".`, {
        next: ['Give each migration its own tag, and pass each one once.'],
      });
    }
    tags.add(tag);
  }
}

async function assertSameMigration(
  { connection }: Target,
  history: History,
  migration: Migration,
  { row }: HistoryRecord,
): Promise<void> {
  if (row.checksum === checksum(migration)) return;
  await assertRowsUnchanged(connection, history, [migration]);
  throw new SvcError('migration_edited', `Another migration is applied under the tag "${migration.tag}".`, {
    why: 'Its checksum differs from the one in the history.',
    state: 'Nothing was changed.',
    next: ['Give the changed migration its own tag.'],
  });
}
