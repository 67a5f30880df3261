import type { Connection } from '../dialect.ts';
import { describeError, isSvcError, SvcError } from '../errors.ts';
import { allRows, anyDefinition, type Versioned } from '../records.ts';
import type { SchemaModel } from '../schema/model.ts';
import { MutableSchema } from '../schema/mutable-schema.ts';
import { rememberApprovalStore } from './approval-table.ts';
import { asDamage, assertKnownStatus, assertUnchanged } from './history-damage.ts';
import {
  APPROVED_HISTORY_VERSION,
  auditTable,
  HISTORY_VERSION,
  type HistoryRow,
  historyTable,
  type MetaRow,
  metaTable,
} from './history-table.ts';
import type { Migration } from './migration.ts';
import { type MigrationReplay, replayMigrations } from './replay.ts';
import type { DatabaseAccess, Target } from './target.ts';

const OMITTED = ['migration', 'sdk_version', 'applied_by', 'epoch', 'journal', 'started', 'found'] as const;

/** The columns that planning and `status` need. */
export type HistorySummary = Omit<HistoryRow, (typeof OMITTED)[number]>;

export interface HistoryRecord {
  readonly row: HistorySummary;
  readonly version: number;
  /** Absent until a replay needs it. */
  readonly migration?: Migration;
}

const ALL_COLUMNS = Object.keys(historyTable.columns) as (keyof HistoryRow)[];
const SUMMARY_COLUMNS = ALL_COLUMNS.filter((column) => !(OMITTED as readonly string[]).includes(column));
const COLUMNS_WITH_MIGRATION = [...SUMMARY_COLUMNS, 'migration'] as const;

/** The migration history of one database, and the schema it describes. Only writers need the lock to read it. */
export class History {
  readonly records = new Map<string, HistoryRecord>();
  #model: MutableSchema | undefined;
  #lastSeq = 0;
  #lastApiTag = '';

  static async read(connection: Connection): Promise<History> {
    const history = new History();
    await history.#load(connection, SUMMARY_COLUMNS);
    return history;
  }

  /** Reads the history as it will be after interrupted migrations and rollbacks are finished. */
  static async readAsRecovered(connection: Connection): Promise<History> {
    const history = new History();
    for (const { row, ...record } of await History.readWithMigrations(connection)) {
      const status = isRollback(row) ? 'rolled_back' : 'completed';
      history.set({ ...record, row: row.status === 'applying' ? { ...row, status } : row });
    }
    return history;
  }

  /** Every row with its migration, in the order of application. */
  static async readWithMigrations(connection: Connection): Promise<Required<HistoryRecord>[]> {
    const history = new History();
    await history.#load(connection, COLUMNS_WITH_MIGRATION);
    return history.inOrder().filter(hasMigration);
  }

  /** All records, in the order of application. */
  inOrder(): HistoryRecord[] {
    return [...this.records.values()].sort((a, b) => a.row.seq - b.row.seq);
  }

  /** Completed records, in the order of application. */
  completed(): HistoryRecord[] {
    return this.inOrder().filter(({ row }) => row.status === 'completed');
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The greatest tag of an automatic migration. */
  get lastApiTag(): string {
    return this.#lastApiTag;
  }

  /** Completed records with their migrations, in the order of application. */
  async completedMigrations(connection: Connection): Promise<Required<HistoryRecord>[]> {
    let completed = this.completed();
    if (!completed.every(hasMigration)) {
      await this.#load(connection, COLUMNS_WITH_MIGRATION);
      completed = this.completed();
    }
    return completed.filter(hasMigration);
  }

  /**
   * The schema that the completed migrations produce. Unmanaged tables they depend on come from the catalog. Throws
   * `history_damaged` if one of the rows was changed.
   */
  async model(target: DatabaseAccess): Promise<SchemaModel> {
    if (!this.#model) {
      const completed = await this.completedMigrations(target.connection);
      for (const { row, migration } of completed) assertUnchanged(row, migration);
      this.#model = await modelFromMigrations(
        completed.map(({ migration }) => migration),
        target,
      );
    }
    return this.#model;
  }

  /** Transfers the model to a planner, which changes it. Pass it to `returnModel` once the plan has run. */
  async takeModel(target: DatabaseAccess): Promise<MutableSchema> {
    await this.model(target);
    const model = this.#model ?? new MutableSchema();
    this.#model = undefined;
    return model;
  }

  returnModel(model: MutableSchema): void {
    this.#model = model;
  }

  /** Adds or replaces a row that was read or written. */
  set(record: HistoryRecord): void {
    const { row } = record;
    this.records.set(row.tag, record);
    this.#lastSeq = Math.max(this.#lastSeq, row.seq);
    if (row.origin === 'api' && row.tag > this.#lastApiTag) this.#lastApiTag = row.tag;
    this.#model = undefined;
  }

  async #load(connection: Connection, columns: readonly (keyof HistoryRow)[]): Promise<void> {
    const rows = allRows(connection.records(historyTable), 'bySeq', { limit: 1000, columns });
    try {
      for await (const { record, version } of rows) {
        const { migration, ...row } = record;
        assertKnownStatus(row);
        this.set({ row, version, ...(migration && { migration }) });
      }
    } catch (error) {
      throw asDamage(error, historyTable.collection);
    }
  }
}

function hasMigration(record: HistoryRecord): record is Required<HistoryRecord> {
  return record.migration !== undefined;
}

/** Whether an unfinished row is a rollback: only a rollback has `applied_at` and remaining steps. */
export function isRollback({ applied_at, rolled_back_at, step, steps }: HistorySummary): boolean {
  return applied_at !== null && rolled_back_at === null && step < steps;
}

/** The schema that the history describes. Takes no lock. */
export async function historyModel(target: Target): Promise<SchemaModel> {
  await assertDatabaseOwner(target);
  return (await History.read(target.connection)).model(target);
}

/** The schema that migrations produce in this order. */
export async function modelFromMigrations(
  migrations: readonly Migration[],
  { connection, dialect }: DatabaseAccess,
): Promise<MutableSchema> {
  const { model, unmanaged } = replayCompleted(migrations, dialect.name);
  if (unmanaged.size === 0) return model;
  const found = await connection.introspect([...unmanaged]);
  for (const name of unmanaged) {
    const collection = found.get(name);
    if (collection) model.set(name, collection);
    else model.delete(name);
  }
  return model;
}

function replayCompleted(migrations: readonly Migration[], dialect: string): MigrationReplay {
  try {
    return replayMigrations(migrations, dialect);
  } catch (error) {
    if (!isSvcError(error)) throw error;
    const { tag } = error.details;
    throw new SvcError(error.code, `The history lacks a migration that "${tag}" depends on.`, {
      why: describeError(error),
      state: 'Nothing was changed.',
      next: [
        `svc db migrate resolve ${tag} --forget    then repeat for each migration that the next error names`,
        'svc db migrate baseline    records them again, with the missing one',
      ],
      where: error.where ?? String(tag),
      details: { tag },
      cause: error,
    });
  }
}

/** The row that names the owner of the database. Throws `history_damaged` if its table lacks a column. */
export function readMeta(connection: Connection): Promise<Versioned<MetaRow> | undefined> {
  return connection
    .records(metaTable)
    .get('meta')
    .catch((error) => {
      throw asDamage(error, metaTable.collection);
    });
}

/** Reads the history's `_svc_meta` row and throws `history_newer` if a newer SDK wrote it. Writes nothing. */
export async function assertHistoryVersion(target: Target): Promise<Versioned<MetaRow> | undefined> {
  const found = await readMeta(target.connection).catch((error) => {
    throw isSvcError(error) ? error.with({ state: 'Nothing was changed.' }) : error;
  });
  if (!found) return undefined;
  const { version } = found.record;
  if (version > APPROVED_HISTORY_VERSION) {
    throw new SvcError(
      'history_newer',
      `The history of "${target.database}" was written by a newer version of @svc/sdk.`,
      {
        why: `It has version ${version}; this SDK supports versions up to ${APPROVED_HISTORY_VERSION}.`,
        state: 'Nothing was changed.',
        next: ['npm install @svc/sdk@latest'],
      },
    );
  }
  return found;
}

function needsApprover({ database, env }: Target): SvcError {
  return new SvcError('approvers_changed', `People approve what changes "${database}", and nobody is configured to.`, {
    why: `The database remembers that it has approvers, and the configuration has none for "${env}".`,
    state: 'Nothing was changed.',
    next: [`Set environments.${env}.approval as it was.`],
  });
}

function isOwnedBy(target: Target, { product, database, env }: MetaRow): boolean {
  return product === target.product && database === target.database && env === target.env;
}

/** `assertHistoryVersion`, and throws `database_foreign` if the row names another product, database or environment. */
export async function assertDatabaseOwner(target: Target): Promise<Versioned<MetaRow> | undefined> {
  const found = await assertHistoryVersion(target);
  if (!found || isOwnedBy(target, found.record)) return found;
  const { product, database, env } = found.record;
  throw new SvcError(
    'database_foreign',
    `This database belongs to ${product}/${database} (${env}), not to ${target.product}/${target.database} (${target.env}).`,
    {
      why: 'Its _svc_meta table names that owner. A URL in the configuration may point at the wrong server.',
      state: 'Nothing was changed.',
      next: ['Correct the URL in svc.config.', 'Or take over the database: svc db migrate --adopt'],
    },
  );
}

/** The store of its approvals, if the database does not remember it yet. */
export async function newApprovalStore(target: Target): Promise<string | undefined> {
  if (!target.approver) return undefined;
  const found = await assertHistoryVersion(target);
  return found?.record.version === APPROVED_HISTORY_VERSION ? undefined : target.approver.store();
}

/** Creates the history tables on first use; with `adopt`, also takes over a foreign database. Needs the lock. */
export async function claimDatabase(
  target: Target,
  epoch: number,
  adopt: boolean,
  approvalStore: string | undefined,
): Promise<void> {
  const found = adopt ? await assertHistoryVersion(target) : await assertDatabaseOwner(target);
  const { connection, product, database, env, approver } = target;
  const isApproved = found?.record.version === APPROVED_HISTORY_VERSION;
  if (isApproved && !approver) throw needsApprover(target);
  const version = approver ? APPROVED_HISTORY_VERSION : HISTORY_VERSION;
  if (found && isOwnedBy(target, found.record) && found.record.version === version) return;
  await connection.ensureTables([anyDefinition(historyTable), anyDefinition(metaTable), anyDefinition(auditTable)]);
  if (approvalStore !== undefined && !isApproved) await rememberApprovalStore(connection, approvalStore);
  const row: MetaRow = { id: 'meta', version, product, database, env };
  const store = connection.records(metaTable);
  const current = found ?? (await store.get('meta'));
  if (current) await store.replace('meta', current.version, row, { epoch });
  else await store.insert(row);
}

/** The status of a migration, as it will be when it is finished, with its place; null without a row. */
export function stateOf(history: History, tag: string): string | null {
  const row = history.records.get(tag)?.row;
  if (!row) return null;
  const finished = isRollback(row) ? 'rolled_back' : 'completed';
  return `${row.seq} ${row.status === 'applying' ? finished : row.status}`;
}
