import type { Adapter } from '../database/adapter.ts';
import type { Connection } from '../dialect.ts';
import { isSvcError, SvcError, sentences } from '../errors.ts';
import { anyDefinition, type Versioned } from '../records.ts';
import { Draft } from '../schema/draft.ts';
import type { SchemaModel } from '../schema/model.ts';
import { isWayBack } from './half-done.ts';
import { audit, HISTORY_VERSION, type HistoryRow, history, type MetaRow, meta } from './history.ts';
import type { Migration } from './migration.ts';
import { type Retelling, retold } from './retelling.ts';

/** Columns that neither planning nor `status` needs; the migration object is read when replaying needs it. */
const LEFT_OUT = ['migration', 'sdk_version', 'applied_by', 'epoch', 'journal', 'started', 'found'] as const;

export type LedgerRow = Omit<HistoryRow, (typeof LEFT_OUT)[number]>;

export interface LedgerEntry {
  readonly row: LedgerRow;
  readonly version: number;
  readonly migration?: Migration;
}

const ALL = Object.keys(history.columns) as (keyof HistoryRow)[];
const LIGHT = ALL.filter((column) => !(LEFT_OUT as readonly string[]).includes(column));
const WHOLE = [...LIGHT, 'migration'] as const;

/** The history of one database and the model it tells. Writers read it under the lock; `status` reads it without. */
export class Ledger {
  readonly entries = new Map<string, LedgerEntry>();
  #model: Draft | undefined;
  #lastSeq = 0;
  #lastApiTag = '';

  static async read(connection: Connection): Promise<Ledger> {
    const ledger = new Ledger();
    await ledger.#page(connection, LIGHT);
    return ledger;
  }

  /** As it will be once what was interrupted has come to its end. */
  static async settled(connection: Connection): Promise<Ledger> {
    const ledger = new Ledger();
    for (const { row, ...entry } of await Ledger.readWhole(connection)) {
      const end = isWayBack(row) ? 'rolled_back' : 'completed';
      ledger.set({ ...entry, row: row.status === 'applying' ? { ...row, status: end } : row });
    }
    return ledger;
  }

  /** Every row with its migration object, in the order of application. */
  static async readWhole(connection: Connection): Promise<Required<LedgerEntry>[]> {
    const ledger = new Ledger();
    await ledger.#page(connection, WHOLE);
    return ledger.inOrder().filter(hasMigration);
  }

  /** Rows in the order of application. */
  inOrder(): LedgerEntry[] {
    return [...this.entries.values()].sort((a, b) => a.row.seq - b.row.seq);
  }

  completed(): LedgerEntry[] {
    return this.inOrder().filter((entry) => entry.row.status === 'completed');
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The greatest tag that the API made. */
  get lastApiTag(): string {
    return this.#lastApiTag;
  }

  /** Completed migrations with their objects, in the order of application. */
  async migrations(connection: Connection): Promise<Required<LedgerEntry>[]> {
    let completed = this.completed();
    if (!completed.every(hasMigration)) {
      await this.#page(connection, WHOLE);
      completed = this.completed();
    }
    return completed.filter(hasMigration);
  }

  /**
   * What the completed migrations made. Tables that svc did not make but migrations changed are taken from the
   * catalog as they are now.
   */
  async model(connection: Connection): Promise<SchemaModel> {
    this.#model ??= await modelOf(
      (await this.migrations(connection)).map(({ migration }) => migration),
      connection,
    );
    return this.#model;
  }

  /** The model to plan on. The ledger lets go of it: `keep` gives it back when what was planned is through. */
  async draft(connection: Connection): Promise<Draft> {
    await this.model(connection);
    const draft = this.#model ?? new Draft();
    this.#model = undefined;
    return draft;
  }

  keep(draft: Draft): void {
    this.#model = draft;
  }

  /** Notes a row that was written. */
  set(entry: LedgerEntry): void {
    this.entries.set(entry.row.tag, entry);
    this.#lastSeq = Math.max(this.#lastSeq, entry.row.seq);
    if (entry.row.origin === 'api' && entry.row.tag > this.#lastApiTag) this.#lastApiTag = entry.row.tag;
    this.#model = undefined;
  }

  async #page(connection: Connection, columns: readonly (keyof HistoryRow)[]): Promise<void> {
    const store = connection.records(history);
    let cursor: string | undefined;
    do {
      const page = await store.page('bySeq', { limit: 1000, columns, ...(cursor !== undefined && { cursor }) });
      for (const { record, version } of page.records) {
        const { migration, ...row } = record;
        this.set({ row, version, ...(migration && { migration }) });
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
}

function hasMigration(entry: LedgerEntry): entry is Required<LedgerEntry> {
  return entry.migration !== undefined;
}

function readOn(migrations: readonly Migration[]): Retelling {
  try {
    return retold(migrations);
  } catch (error) {
    if (!isSvcError(error)) throw error;
    const { tag } = error.details;
    throw new SvcError(error.code, `The history lacks what "${tag}" builds on.`, {
      why: sentences(error),
      state: 'Nothing was changed.',
      next: [
        `svc db migrate resolve ${tag} --forget    and so each one that is named then`,
        'svc db migrate baseline    records them again, with what was missing',
      ],
      where: error.where ?? String(tag),
      details: { tag },
      cause: error,
    });
  }
}

/** The model that migrations make, in that order. */
export async function modelOf(migrations: readonly Migration[], connection: Connection): Promise<Draft> {
  const { model, foreign } = readOn(migrations);
  if (foreign.size === 0) return model;
  const found = await connection.introspect([...foreign]);
  for (const name of foreign) {
    const collection = found.get(name);
    if (collection) model.set(name, collection);
    else model.delete(name);
  }
  return model;
}

/** Refuses a database of another product, tag or environment, and a history of a newer SDK. Writes nothing. */
export async function checkMeta(adapter: Adapter): Promise<Versioned<MetaRow> | undefined> {
  const found = await adapter.connection
    .records(meta)
    .get('meta')
    .catch((error) => {
      throw isSvcError(error) ? error.with({ state: 'Nothing was changed.' }) : error;
    });
  if (!found) return undefined;
  const { record } = found;
  if (record.version > HISTORY_VERSION) {
    throw new SvcError(
      'history_newer',
      `The history of "${adapter.database}" was written by a newer version of @svc/sdk.`,
      {
        why: `It has version ${record.version}; this SDK knows ${HISTORY_VERSION}.`,
        state: 'Nothing was changed.',
        next: ['npm install @svc/sdk@latest'],
      },
    );
  }
  return found;
}

function isOurs(adapter: Adapter, record: MetaRow): boolean {
  return record.product === adapter.product && record.database === adapter.database && record.env === adapter.env;
}

/** `checkMeta`, and whose database it is. */
export async function checkOwner(adapter: Adapter): Promise<Versioned<MetaRow> | undefined> {
  const found = await checkMeta(adapter);
  if (!found || isOurs(adapter, found.record)) return found;
  const { product, database, env } = found.record;
  throw new SvcError(
    'database_foreign',
    `This database belongs to ${product}/${database} (${env}), not to ${adapter.product}/${adapter.database} (${adapter.env}).`,
    {
      why: 'Its _svc_meta says so: a URL of the configuration may point at the wrong server.',
      state: 'Nothing was changed.',
      next: ['Correct the URL in svc.config.', 'Or take the database over: svc db migrate --adopt'],
    },
  );
}

/** Under the lock: makes the tables of the history on first use, and takes a database over where that was asked for. */
export async function claimDatabase(adapter: Adapter, epoch: number, adopt: boolean): Promise<void> {
  const found = adopt ? await checkMeta(adapter) : await checkOwner(adapter);
  if (found && isOurs(adapter, found.record) && found.record.version === HISTORY_VERSION) return;
  await adapter.connection.ensure([anyDefinition(history), anyDefinition(meta), anyDefinition(audit)]);
  const ours: MetaRow = {
    id: 'meta',
    version: HISTORY_VERSION,
    product: adapter.product,
    database: adapter.database,
    env: adapter.env,
  };
  const store = adapter.connection.records(meta);
  const current = found ?? (await store.get('meta'));
  if (current) await store.replace('meta', current.version, ours, { epoch });
  else await store.insert(ours);
}
