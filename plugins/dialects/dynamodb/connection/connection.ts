import type { Connection } from '../../../../core/dialect.ts';
import { registeredWhile } from '../../shared/lock-wait.ts';
import { introspect, normalize, unsupportedObjects } from '../catalog/introspect.ts';
import { queryRows } from '../compile/raw.ts';
import type { DynamoStep } from '../compile/step.ts';
import { updateItems } from '../data/update.ts';
import { ensureRecords, recordStore } from '../records/record-store.ts';
import { runSegments } from '../run/run.ts';
import type { RunContext } from '../run/run-context.ts';
import { type Api, scanPages } from './api.ts';
import { withSvcErrors } from './errors.ts';
import { isLocked, type Lease, withLease } from './lease.ts';
import type { Settings } from './settings.ts';
import { StateTable } from './system-table.ts';

export function createConnection(api: Api, settings: Settings): Connection<DynamoStep> {
  const { itemsPerSecond, onProgress } = settings;
  const state = new StateTable(api);
  const leases = new Map<number, Lease>();

  /** Without a lease, as after its release, only the epoch can be checked. */
  const leaseCheck = (epoch: number) => async () => {
    const lease = leases.get(epoch);
    if (lease) return lease.assertHeld();
    await state.assertEpoch(epoch);
  };

  return {
    server: 'DynamoDB',
    async run(segments, epoch, _tookMs, observer) {
      await withSvcErrors(() => state.ensure());
      const context: RunContext = { api, state, epoch, assertLease: leaseCheck(epoch), itemsPerSecond, onProgress };
      return runSegments(context, segments, observer);
    },
    query: (text) => withSvcErrors(() => queryRows(api, text)),
    introspect: (collections) => withSvcErrors(() => introspect(api, state, collections)),
    unsupportedObjects: () => withSvcErrors(() => unsupportedObjects(api, state)),
    normalize: async (model) => normalize(model),
    records: (definition) => recordStore(api, state, definition),
    ensureTables: (definitions) => withSvcErrors(() => ensureRecords(api, definitions)),
    update: (job) => withSvcErrors(() => updateItems({ api, state, itemsPerSecond, onProgress }, job)),
    now: () =>
      withSvcErrors(async () => {
        // Every response carries the server's time.
        await api.send('ListTables', { Limit: 1 });
        return new Date(api.clock.now());
      }),
    count: (collection, limit) =>
      withSvcErrors(async () => {
        let count = 0;
        const input = { TableName: api.table(collection), Select: 'COUNT', Limit: limit } as const;
        for await (const page of scanPages(api, input)) {
          count += page.Count ?? 0;
          if (count >= limit) return limit;
        }
        return count;
      }),
    withLock: (work, lockOptions = {}) =>
      withSvcErrors(() => withLease(api, state, registeredWhile(leases, work), lockOptions, settings.leaseMs)),
    isLocked: () => withSvcErrors(() => isLocked(api, state)),
    close: async () => api.close(),
  };
}
