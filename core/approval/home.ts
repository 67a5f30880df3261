import { setTimeout as wait } from 'node:timers/promises';
import type { Connection } from '../dialect.ts';
import { isSvcError, SvcError } from '../errors.ts';
import type { RecordDefinition, RecordStore } from '../records.ts';

/** Where approvals and executions live: a database, or memory. */
export interface StoreHome extends Pick<Connection, 'records' | 'ensure' | 'exclusively' | 'now' | 'close'> {
  /** As `Connection.watch`; gives undefined where nobody tells. */
  watch?(topic: string, hint: (key?: string) => void): Promise<(() => Promise<void>) | undefined>;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
const PATIENCE_MS = 10_000;

/** The server is gone or going; another connection may find it back. */
export function isOutage(error: unknown): boolean {
  return isSvcError(error) && (error.code === 'connection_lost' || error.code === 'connection_failed');
}

/** What the store refuses for now, or for as long as nobody mends it: all but what it can never hold. */
export function mayPass(error: unknown): boolean {
  return isSvcError(error) && error.code !== 'value_invalid' && error.code !== 'data_violates';
}

/**
 * A home that connects when it is first asked and again after its connection was lost. What was on its way is then
 * sent once more: a write may have taken effect already, and its second answer is `exists`, `stale` or `missing`.
 */
export function reconnecting(connect: () => Promise<StoreHome>, patienceMs = PATIENCE_MS): StoreHome {
  let current: Promise<StoreHome> | undefined;
  let closed = false;
  const open = (): Promise<StoreHome> => {
    if (closed) throw new SvcError('interrupted', 'The client is closed.', { next: ['Make a new client.'] });
    if (current) return current;
    const opening = connect();
    current = opening;
    opening.catch(() => forget(opening));
    return opening;
  };
  const forget = (gone: Promise<StoreHome>): void => {
    if (current !== gone) return;
    current = undefined;
    void gone.then((home) => home.close()).catch(() => undefined);
  };
  const ask = async <T>(work: (home: StoreHome) => Promise<T>): Promise<T> => {
    const deadline = performance.now() + patienceMs;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const used = open();
      try {
        return await work(await used);
      } catch (error) {
        if (!isOutage(error)) throw error;
        forget(used);
        if (closed || performance.now() + pause > deadline) throw error;
        await wait(pause);
      }
    }
  };
  return {
    records<R extends object>(definition: RecordDefinition<R>): RecordStore<R> {
      const on = <T>(work: (store: RecordStore<R>) => Promise<T>) => ask((home) => work(home.records(definition)));
      return {
        insert: (record) => on((it) => it.insert(record)),
        get: (key) => on((it) => it.get(key)),
        replace: (key, version, record, guard) => on((it) => it.replace(key, version, record, guard)),
        page: (index, query) => on((it) => it.page(index, query)),
        remove: (key, version) => on((it) => it.remove(key, version)),
      };
    },
    ensure: (definitions) => ask((home) => home.ensure(definitions)),
    exclusively: (work, options) => ask((home) => home.exclusively(work, options)),
    now: () => ask((home) => home.now()),
    watch: (topic, hint) => ask(async (home) => home.watch?.(topic, hint)),
    async close() {
      closed = true;
      await current?.then((home) => home.close()).catch(() => undefined);
    },
  };
}
