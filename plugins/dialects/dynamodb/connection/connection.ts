import type { Connection, PermissionProbe } from '../../../../core/dialect.ts';
import { registeredWhile } from '../../shared/lock-wait.ts';
import { introspect, introspectAs, normalize, unsupportedObjects } from '../catalog/introspect.ts';
import { definitionOf } from '../catalog/registry.ts';
import { type DynamoStep, statementFor } from '../compile/step.ts';
import { updateItems } from '../data/update.ts';
import { ensureRecords, recordStore } from '../records/record-store.ts';
import { queryRows } from '../run/raw-request.ts';
import { runSegments } from '../run/run.ts';
import type { RunContext } from '../run/run-context.ts';
import type { DynamoClient } from './client.ts';
import { withSvcErrors } from './errors.ts';
import { isLocked, type Lease, withLease } from './lease.ts';
import { countItems } from './read-items.ts';
import type { Settings } from './settings.ts';
import { StateTable } from './state-table.ts';
import { describeTable } from './wait-for-table.ts';

const MISSING = { TableName: '_svc_doctor_missing' };

const PERMISSION_PROBES: readonly PermissionProbe[] = [
  { needed: 'change tables', text: JSON.stringify({ UpdateTable: { ...MISSING, BillingMode: 'PAY_PER_REQUEST' } }) },
  { needed: 'drop tables', text: JSON.stringify({ DeleteTable: MISSING }) },
  { needed: 'write items', text: JSON.stringify({ PutItem: { ...MISSING, Item: { id: { S: 'x' } } } }) },
];

export function createConnection(client: DynamoClient, settings: Settings): Connection<DynamoStep> {
  const { itemsPerSecond, onProgress } = settings;
  const state = new StateTable(client);
  const leases = new Map<number, Lease>();

  /** Without a lease, as after its release, only the epoch can be checked. */
  const leaseCheck = (epoch: number) => async () => {
    const lease = leases.get(epoch);
    if (lease) return lease.assertHeld();
    await state.assertEpoch(epoch);
  };

  const run: Connection<DynamoStep>['run'] = async (segments, epoch, _tookMs, observer) => {
    await withSvcErrors(() => state.ensure());
    const context: RunContext = { client, state, epoch, assertLease: leaseCheck(epoch), itemsPerSecond, onProgress };
    return runSegments(context, segments, observer);
  };

  return {
    server: 'DynamoDB',
    run,
    introspectAs: (collection) => withSvcErrors(() => introspectAs(client, state, collection)),
    async adopt(collections, epoch) {
      const statements = collections.map((one) =>
        statementFor(`Register ${one.name}`, { kind: 'register', table: one.name, definition: definitionOf(one) }),
      );
      const segments = statements.map((one) => ({ transactional: false, statements: [one], writes: [] }));
      const { failure } = await run(segments, epoch);
      if (failure) throw failure.error;
    },
    query: (text) => withSvcErrors(() => queryRows(client, text)),
    permissionProbes: PERMISSION_PROBES,
    introspect: (collections) => withSvcErrors(() => introspect(client, state, collections)),
    unsupportedObjects: () => withSvcErrors(() => unsupportedObjects(client, state)),
    normalize: async (model) => normalize(model),
    records: (definition) => recordStore(client, state, definition),
    ensureTables: (definitions) => withSvcErrors(() => ensureRecords(client, definitions)),
    update: (job) => withSvcErrors(() => updateItems({ client, state, itemsPerSecond, onProgress }, job)),
    now: () =>
      withSvcErrors(async () => {
        // Every response carries the server's time.
        await client.send('ListTables', { Limit: 1 });
        return new Date(client.clock.now());
      }),
    count: (collection, limit) => withSvcErrors(() => countItems(client, collection, limit)),
    countValues: (collection, field, limit) =>
      withSvcErrors(() =>
        countItems(client, collection, limit, {
          FilterExpression: 'attribute_exists(#field) AND NOT attribute_type(#field, :null)',
          ExpressionAttributeNames: { '#field': field },
          ExpressionAttributeValues: { ':null': { S: 'NULL' } },
        }),
      ),
    estimateCount: (collection) =>
      withSvcErrors(async () => (await describeTable(client, client.table(collection)))?.ItemCount ?? 0),
    withLock: (work, lockOptions = {}) =>
      withSvcErrors(() => withLease(client, state, registeredWhile(leases, work), lockOptions, settings.leaseMs)),
    isLocked: () => withSvcErrors(() => isLocked(client, state)),
    close: async () => client.close(),
  };
}
