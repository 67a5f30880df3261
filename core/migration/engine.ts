import type { Adapter } from '../database/adapter.ts';
import { type ErrorCode, SvcError } from '../errors.ts';
import { isPlainObject } from '../json.ts';
import type { Shape } from '../schema/shape.ts';
import { ownArguments, ownCopy } from './arguments.ts';
import { checksum } from './checksum.ts';
import { execute } from './execute.ts';
import { type Execution, sentTexts } from './execution.ts';
import type { Origin, Status } from './history.ts';
import { checkOwner, Ledger, type LedgerEntry } from './ledger.ts';
import type { Migration } from './migration.ts';
import { type PlannedMigration, planMigration } from './plan.ts';
import { problems } from './problems.ts';
import { draftFor } from './references.ts';
import { type Resolution, type ResolveReport, resolve } from './resolve.ts';
import { planReverse } from './reverse.ts';
import { underLock } from './session.ts';

export interface EngineResult {
  readonly tag: string;
  readonly status: 'completed' | 'skipped' | 'rolled_back';
  readonly durationMs: number;
  /** What was sent to the database. */
  readonly statements: readonly string[];
}

/** SPEC 2.13, with what `getHistory({ all: true })` needs to tell the others apart. */
export interface HistoryEntry {
  readonly tag: string;
  readonly name: string;
  /** Absent on a row that was never applied to its end. */
  readonly appliedAt?: Date;
  readonly checksum: string;
  readonly migration: Migration;
  /** Order of application. */
  readonly seq: number;
  readonly origin: Origin;
  readonly status: Status;
}

/** SPEC 2.13. */
export interface MigrationStatus {
  readonly total: number;
  readonly completed: number;
  readonly pending: number;
  /** The last one of the whole history. */
  readonly lastApplied?: HistoryEntry;
  readonly pendingMigrations: readonly Migration[];
}

/** Applies and takes back migrations on one database. Every call takes the lock, so several engines exclude one another. */
export class MigrationEngine {
  readonly #adapter: Adapter;

  /** From `db.getAdapter()`. */
  constructor(adapter: Adapter) {
    const given: unknown = adapter;
    if (!isPlainObject(given) || !given.connection || !given.dialect || !given.hooks) {
      throw new SvcError('database_unknown', 'A MigrationEngine needs the adapter of a connected database.', {
        next: ['new MigrationEngine(db.getAdapter())'],
      });
    }
    this.#adapter = adapter;
  }

  /** `skipped` where it is applied already. Throws `migration_edited` where something else is applied under its tag. */
  async up(given: Migration): Promise<EngineResult> {
    const migration = own(given);
    return underLock(this.#adapter, {}, async (run) => {
      const known = run.ledger.entries.get(migration.tag);
      if (known?.row.status === 'completed') {
        refuseOther(migration, known);
        return { tag: migration.tag, status: 'skipped', durationMs: 0, statements: [] };
      }
      const draft = await draftFor(this.#adapter, run.ledger, migration.up);
      return runOne(run, await planMigration(this.#adapter, migration, 'up', 'engine', draft));
    });
  }

  /** Runs its `down`, also when it is not the last one, where that leads to what the others make: else `not_reversible_now`. */
  async down(given: Migration): Promise<EngineResult> {
    const migration = own(given);
    return underLock(this.#adapter, {}, async (run) => {
      const known = run.ledger.entries.get(migration.tag);
      if (known?.row.status !== 'completed') {
        throw new SvcError('migration_not_applied', `The migration "${migration.tag}" is not applied.`, {
          state: 'Nothing was changed.',
          next: ['engine.getHistory() tells what is.'],
        });
      }
      refuseOther(migration, known);
      const completed = await run.ledger.migrations(this.#adapter.connection);
      const draft = await draftFor(this.#adapter, run.ledger, migration.down);
      const all = completed.map((entry) => entry.migration);
      return runOne(run, await planReverse(this.#adapter, migration, known.row, draft, all));
    });
  }

  /** The completed ones in the order of application; with `all` every row there is. */
  async getHistory(options: { readonly all?: boolean } = {}): Promise<HistoryEntry[]> {
    const shapes = { options: HISTORY_OPTIONS };
    const { all } = ownArguments('getHistory', { options }, shapes, { code: invalid }).options;
    const entries = await this.#entries();
    return all ? entries : entries.filter(({ status }) => status === 'completed');
  }

  /** Throws `tag_taken` where two of them have the same tag. */
  async getStatus(options: { readonly definedMigrations: readonly Migration[] }): Promise<MigrationStatus> {
    const defined: unknown = options?.definedMigrations;
    if (!Array.isArray(defined)) {
      throw new SvcError('migration_invalid', 'getStatus needs the migrations that are defined.', {
        next: ['engine.getStatus({ definedMigrations: [migration] })'],
      });
    }
    const definedMigrations: readonly Migration[] = defined.map(own);
    refuseTwice(definedMigrations);
    const completed = await this.getHistory();
    const tags = new Set(completed.map(({ tag }) => tag));
    const pendingMigrations = definedMigrations
      .filter(({ tag }) => !tags.has(tag))
      .sort((a, b) => (a.tag < b.tag ? -1 : 1));
    const done = definedMigrations.length - pendingMigrations.length;
    const lastApplied = completed.at(-1);
    return {
      total: definedMigrations.length,
      completed: done,
      pending: pendingMigrations.length,
      ...(lastApplied && { lastApplied }),
      pendingMigrations,
    };
  }

  /** A person's decision about a migration that stopped half-way. */
  resolve(tag: string, action: Resolution): Promise<ResolveReport> {
    return resolve(this.#adapter, tag, action);
  }

  async #entries(): Promise<HistoryEntry[]> {
    await checkOwner(this.#adapter);
    const entries = await Ledger.readWhole(this.#adapter.connection);
    return entries.map(({ row, migration }) => ({
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

/** Runs one planned migration and says what came of it. */
export async function runOne(run: Execution, planned: PlannedMigration): Promise<EngineResult> {
  await execute(run, [planned]);
  const status = planned.direction === 'up' ? 'completed' : 'rolled_back';
  const row = run.ledger.entries.get(planned.tag)?.row;
  if (row?.status !== status) throw new Error(`"${planned.tag}" was run and the history does not say so`);
  return {
    tag: planned.tag,
    status,
    durationMs: row.duration_ms ?? 0,
    statements: sentTexts(run, planned),
  };
}

const HISTORY_OPTIONS: Shape = { properties: { all: 'boolean' } };
const invalid = (): ErrorCode => 'migration_invalid';

/** A valid migration that its owner cannot change any more. */
function own(migration: Migration): Migration {
  const found = problems(migration);
  if (found.length === 0) return ownCopy(migration, 'The engine', 'migration_invalid');
  throw new SvcError('migration_invalid', 'The migration is not valid.', {
    why: found.join(' '),
    state: 'Nothing was changed.',
  });
}

function refuseTwice(migrations: readonly Migration[]): void {
  const tags = new Set<string>();
  for (const { tag } of migrations) {
    if (tags.has(tag)) {
      throw new SvcError('tag_taken', `Two of the migrations have the tag "${tag}".`, {
        next: ['Give each migration a tag of its own, and name each once.'],
      });
    }
    tags.add(tag);
  }
}

function refuseOther(migration: Migration, { row }: LedgerEntry): void {
  if (row.checksum === checksum(migration)) return;
  throw new SvcError('migration_edited', `Another migration is applied under the tag "${migration.tag}".`, {
    why: 'Its checksum is not the one in the history.',
    state: 'Nothing was changed.',
    next: ['Give the changed migration a tag of its own.'],
  });
}
