import type { Connection } from '../../../../core/dialect.ts';
import { introspect, normalize, unsupportedObjects } from '../catalog/introspect.ts';
import { queryRows } from '../compile/raw.ts';
import type { Item } from '../data/attribute.ts';
import { updateItems } from '../data/update.ts';
import { ensureRecords, recordStore } from '../records/record-store.ts';
import { runSegments } from '../run/run.ts';
import type { RunContext } from '../run/run-context.ts';
import type { Api } from './api.ts';
import { toSvcError } from './errors.ts';
import { isLocked, type Lease, withLease } from './lease.ts';
import type { Settings } from './settings.ts';
import { StateTable } from './system-table.ts';

export function createConnection(api: Api, settings: Settings): Connection {
  const { itemsPerSecond, onProgress } = settings;
  const state = new StateTable(api);
  const leases = new Map<number, Lease>();

  /** Without a lease, as after its release, only the epoch can be checked. */
  const leaseCheck = (epoch: number) => async () => {
    const lease = leases.get(epoch);
    if (lease) return lease.assertHeld();
    await state.assertEpoch(epoch);
  };
  const withSvcErrors =
    <A extends unknown[], T>(work: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      try {
        return await work(...args);
      } catch (error) {
        throw toSvcError(error);
      }
    };

  return {
    server: 'DynamoDB',
    async run(segments, epoch, _tookMs, observer) {
      await withSvcErrors(() => state.ensure())();
      const context: RunContext = { api, state, epoch, assertLease: leaseCheck(epoch), itemsPerSecond, onProgress };
      return runSegments(context, segments, observer);
    },
    query: withSvcErrors((text: string) => queryRows(api, text)),
    introspect: withSvcErrors((collections?: readonly string[]) => introspect(api, state, collections)),
    unsupportedObjects: withSvcErrors(() => unsupportedObjects(api, state)),
    normalize: async (model) => normalize(model),
    records: (definition) => recordStore(api, state, definition),
    ensureTables: withSvcErrors((definitions) => ensureRecords(api, definitions)),
    update: withSvcErrors((job) => updateItems({ api, state, itemsPerSecond, onProgress }, job)),
    now: withSvcErrors(async () => {
      // Every response carries the server's time.
      await api.send('ListTables', { Limit: 1 });
      return new Date(api.clock.now());
    }),
    count: withSvcErrors(async (collection: string, limit: number) => {
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
    withLock: (work, lockOptions = {}) =>
      withSvcErrors(() =>
        withLease(
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
    isLocked: withSvcErrors(() => isLocked(api, state)),
    close: async () => api.close(),
  };
}
