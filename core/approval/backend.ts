import { setTimeout as wait } from 'node:timers/promises';
import type { Connection } from '../dialect.ts';
import { isSvcError, SvcError } from '../errors.ts';
import { type MetaRow, metaTable } from '../migration/history-table.ts';
import { type AnyRecordDefinition, anyDefinition, type RecordDefinition, type RecordStore } from '../records.ts';

/** The database or memory store of approvals and executions. */
export interface StorageBackend extends Pick<Connection, 'records' | 'ensureTables' | 'withLock' | 'now' | 'close'> {
  /** As `Connection.watch`; resolves to undefined if the backend sends no notifications. */
  watch?(topic: string, notify: (key?: string) => void): Promise<(() => Promise<void>) | undefined>;
}

const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 1_000;
const RECONNECT_TIMEOUT_MS = 10_000;

/** The server cannot be reached or is shutting down; a new connection may succeed. */
export function isOutage(error: unknown): boolean {
  return isSvcError(error) && (error.code === 'connection_lost' || error.code === 'connection_failed');
}

/** Every store error except those about the value itself, which fail however often they are retried. */
export function isRetryable(error: unknown): boolean {
  return isSvcError(error) && error.code !== 'value_invalid' && error.code !== 'data_violates';
}

/**
 * A backend that connects on first use and reconnects after an outage. An interrupted operation is sent again: if the
 * first attempt took effect, a repeated write returns `exists`, `stale` or `missing`.
 */
export function reconnectingBackend(
  connect: () => Promise<StorageBackend>,
  timeoutMs = RECONNECT_TIMEOUT_MS,
): StorageBackend {
  let current: Promise<StorageBackend> | undefined;
  let closed = false;
  const open = (): Promise<StorageBackend> => {
    if (closed) throw new SvcError('interrupted', 'The client is closed.', { next: ['Create a new client.'] });
    if (current) return current;
    const opening = connect();
    current = opening;
    opening.catch(() => discard(opening));
    return opening;
  };
  const discard = (lost: Promise<StorageBackend>): void => {
    if (current !== lost) return;
    current = undefined;
    void lost.then((backend) => backend.close()).catch(() => undefined);
  };
  const retry = async <T>(work: (backend: StorageBackend) => Promise<T>): Promise<T> => {
    // Counts from the first failure, which a server that no longer responds takes long to cause.
    let deadline: number | undefined;
    for (let pause = FIRST_RETRY_MS; ; pause = Math.min(pause * 2, MAX_RETRY_MS)) {
      const used = open();
      try {
        return await work(await used);
      } catch (error) {
        if (!isOutage(error)) throw error;
        discard(used);
        deadline ??= performance.now() + timeoutMs;
        if (closed || performance.now() + pause > deadline) throw error;
        await wait(pause);
      }
    }
  };
  return {
    records<R extends object>(definition: RecordDefinition<R>): RecordStore<R> {
      let opened: { readonly backend: StorageBackend; readonly store: RecordStore<R> } | undefined;
      const storeOf = (backend: StorageBackend): RecordStore<R> => {
        if (opened?.backend !== backend) opened = { backend, store: backend.records(definition) };
        return opened.store;
      };
      const run = <T>(work: (store: RecordStore<R>) => Promise<T>) => retry((backend) => work(storeOf(backend)));
      return {
        insert: (record) => run((store) => store.insert(record)),
        get: (key) => run((store) => store.get(key)),
        replace: (key, version, record, guard) => run((store) => store.replace(key, version, record, guard)),
        page: (index, query) => run((store) => store.page(index, query)),
        remove: (key, version) => run((store) => store.remove(key, version)),
      };
    },
    ensureTables: (definitions) => retry((backend) => backend.ensureTables(definitions)),
    withLock: (work, options) => retry((backend) => backend.withLock(work, options)),
    now: () => retry((backend) => backend.now()),
    watch: (topic, notify) => retry(async (backend) => backend.watch?.(topic, notify)),
    async close() {
      closed = true;
      await current?.then((backend) => backend.close()).catch(() => undefined);
    },
  };
}

/** The product and environment that records belong to. Two of them never share tables. */
export interface StoreOwner {
  readonly product: string;
  readonly env: string;
  /** The database's tag in the configuration. */
  readonly database: string;
}

export interface TableSet {
  /** Key of the `_svc_meta` row with the version of these tables. */
  readonly id: Exclude<MetaRow['id'], 'meta'>;
  /** Increases when `definitions` change. */
  readonly version: number;
  readonly definitions: readonly AnyRecordDefinition[];
  /** Adds what rows of version `from` lack, before the new version is recorded. Repeated after a crash. */
  upgrade?(from: number): Promise<void>;
}

/** Creates or upgrades tables under the migration lock. Costs one read if they are up to date. */
export async function ensureTableSet(
  backend: StorageBackend,
  { id, version, definitions, upgrade }: TableSet,
  owner: StoreOwner,
): Promise<void> {
  const store = backend.records(metaTable);
  const isCurrent = async (): Promise<boolean> => {
    const found = (await store.get(id))?.record;
    return found !== undefined && isCurrentVersion(found, owner, version);
  };
  if (await isCurrent()) return;
  await backend.withLock(async () => {
    if (await isCurrent()) return;
    await backend.ensureTables([anyDefinition(metaTable), ...definitions]);
    const row: MetaRow = { id, version, ...owner };
    const before = await store.get(id);
    if (before) {
      await upgrade?.(before.record.version);
      await store.replace(id, before.version, row);
    } else await store.insert(row);
  });
}

/** False for an older version. Throws `database_foreign` and `history_newer`. */
export function isCurrentVersion(found: MetaRow, owner: Pick<StoreOwner, 'product' | 'env'>, version: number): boolean {
  if (found.product !== owner.product || found.env !== owner.env) {
    throw new SvcError(
      'database_foreign',
      `The approvals in this database belong to ${found.product} (${found.env}), not to ${owner.product} (${owner.env}).`,
      {
        why: 'The _svc_meta table names that owner. A URL in the configuration may point to the wrong server.',
        state: 'Nothing was changed.',
        next: ['Correct the URL in svc.config, or set approvals.store to another database.'],
      },
    );
  }
  if (found.version > version) {
    throw new SvcError('history_newer', `The tables of ${found.id} were written by a newer version of @svc/sdk.`, {
      why: `They have version ${found.version}; this SDK supports version ${version}.`,
      state: 'Nothing was changed.',
      next: ['npm install @svc/sdk@latest'],
    });
  }
  return found.version === version;
}
