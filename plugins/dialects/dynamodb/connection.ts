import type { Connection } from '../../../core/dialect.ts';
import type { Api } from './api.ts';
import type { Item } from './attribute.ts';
import { refusal } from './errors.ts';
import { introspect, unreadable } from './introspect.ts';
import { exclusively, isLeased, type Lease } from './lease.ts';
import type { Work } from './move.ts';
import { seen } from './normal.ts';
import { rowsOf } from './query.ts';
import { recordStore } from './record-store.ts';
import { ensureRecords } from './record-tables.ts';
import { runSegments } from './run.ts';
import type { Settings } from './settings.ts';
import { State } from './state.ts';
import { updateItems } from './update.ts';

export function connectionOver(api: Api, settings: Settings): Connection {
  const { itemsPerSecond, onProgress } = settings;
  const state = new State(api);
  const leases = new Map<number, Lease>();

  /** The holder's lease; who has none, as when it was given back, is asked for its epoch. */
  const holder = (epoch: number) => async () => {
    const lease = leases.get(epoch);
    if (lease) return lease.hold();
    await state.stands(epoch);
  };
  const told =
    <A extends unknown[], T>(work: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      try {
        return await work(...args);
      } catch (error) {
        throw refusal(error);
      }
    };

  return {
    server: 'DynamoDB',
    async run(segments, epoch, _tookMs, underway) {
      await told(() => state.ready())();
      const work: Work = { api, state, epoch, hold: holder(epoch), itemsPerSecond, onProgress };
      return runSegments(work, segments, underway);
    },
    query: told((text: string) => rowsOf(api, text)),
    introspect: told((collections?: readonly string[]) => introspect(api, state, collections)),
    unreadable: told(() => unreadable(api, state)),
    seen: async (model) => seen(model),
    records: (definition) => recordStore(api, state, definition),
    ensure: told((definitions) => ensureRecords(api, definitions)),
    update: told((job) => updateItems({ api, state, itemsPerSecond, onProgress }, job)),
    now: told(async () => {
      // Any answer tells the time.
      await api.send('ListTables', { Limit: 1 });
      return new Date(api.clock.now());
    }),
    count: told(async (collection: string, limit: number) => {
      let count = 0;
      let start: Item | undefined;
      do {
        const page = await api.send('Scan', {
          TableName: api.table(collection),
          Select: 'COUNT',
          ConsistentRead: true,
          Limit: limit - count,
          ...(start && { ExclusiveStartKey: start as never }),
        });
        count += page.Count ?? 0;
        start = page.LastEvaluatedKey;
      } while (start && count < limit);
      return count;
    }),
    exclusively: (work, lockOptions = {}) =>
      told(() =>
        exclusively(
          api,
          state,
          async (lease) => {
            leases.set(lease.epoch, lease);
            try {
              return await work(lease.epoch);
            } finally {
              leases.delete(lease.epoch);
            }
          },
          lockOptions,
          settings.leaseMs,
        ),
      )(),
    isLocked: told(() => isLeased(api, state)),
    close: async () => api.close(),
  };
}
