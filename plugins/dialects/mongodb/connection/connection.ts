import type { Connection, PermissionProbe } from '../../../../core/dialect.ts';
import { historyTable } from '../../../../core/migration/history-table.ts';
import { registeredWhile } from '../../shared/lock-wait.ts';
import { introspect, introspectAs, readKeptNames } from '../catalog/introspect.ts';
import { normalizeViews, readViews } from '../catalog/read-views.ts';
import { registryEntry, writeEntries } from '../catalog/registry.ts';
import type { MongoStep } from '../compile/step.ts';
import { runUpdate } from '../data/update.ts';
import { ensureRecordCollections, recordStore } from '../records/record-store.ts';
import { preflight } from '../run/preflight.ts';
import { runCommand } from '../run/raw-command.ts';
import { runSegments } from '../run/run.ts';
import type { RunContext } from '../run/run-context.ts';
import { withSvcErrors } from './errors.ts';
import { assertEpoch, isLocked, type Lease, withLeaseLock } from './lease.ts';
import { type MongoServer, serverTime } from './server.ts';
import type { Settings } from './settings.ts';

const MISSING = '_svc_doctor_missing';

const PERMISSION_PROBES: readonly PermissionProbe[] = [
  { needed: 'change collections', text: JSON.stringify({ collMod: MISSING }) },
  { needed: 'drop collections', text: JSON.stringify({ drop: MISSING }) },
  { needed: 'drop indexes', text: JSON.stringify({ dropIndexes: MISSING, index: 'x' }) },
  {
    needed: 'write the history',
    text: JSON.stringify({
      update: historyTable.collection,
      updates: [{ q: { _id: MISSING }, u: { $set: { x: 1 } } }],
    }),
  },
];

export function createConnection(server: MongoServer, settings: Settings): Connection<MongoStep> {
  /** The leases of this connection, by epoch. */
  const leases = new Map<number, Lease>();
  const assertLockHeld = (epoch: number): Promise<void> =>
    leases.get(epoch)?.assertHeld() ?? assertEpoch(server, epoch);
  const contextOf = (epoch: number): RunContext => ({
    server,
    settings,
    epoch,
    assertLockHeld: () => assertLockHeld(epoch),
  });
  const withoutLock: RunContext = { server, settings, epoch: 0, assertLockHeld: () => Promise.resolve() };
  return {
    server: server.version,
    run: (segments, epoch, _tookMs, observer) => runSegments(contextOf(epoch), segments, observer),
    preflight: (statements) => withSvcErrors(() => preflight(withoutLock, statements)),
    preview: (statements) =>
      withSvcErrors(async () => ({
        ...(await preflight(withoutLock, statements, true)),
        texts: statements.map(({ text }) => text),
      })),
    query: (text) =>
      withSvcErrors(async () => {
        const response = await runCommand(server, text);
        const rows: unknown = response.cursor?.firstBatch ?? [response];
        return rows as readonly Readonly<Record<string, unknown>>[];
      }),
    permissionProbes: PERMISSION_PROBES,
    introspect: (collections) => withSvcErrors(async () => (await introspect(server, settings, collections)).model),
    unsupportedObjects: () => withSvcErrors(async () => (await introspect(server, settings)).unsupportedObjects),
    introspectAs: (collection) => withSvcErrors(() => introspectAs(server, settings, collection)),
    adopt: (collections, epoch) =>
      withSvcErrors(() =>
        writeEntries(
          contextOf(epoch),
          collections.map((one) => ({ collection: one.name, entry: registryEntry(one), creating: false })),
        ),
      ),
    kept: () => withSvcErrors(() => readKeptNames(server)),
    objects: () => withSvcErrors(() => readViews(server)),
    normalizeObjects: (objects) => withSvcErrors(() => normalizeViews(server, objects)),
    normalize: async (model) => model,
    records: (definition) => recordStore(server, definition, assertLockHeld),
    ensureTables: (definitions) => withSvcErrors(() => ensureRecordCollections(server, definitions)),
    update: (job) => withSvcErrors(() => runUpdate(withoutLock, job)),
    now: () => withSvcErrors(() => serverTime(server)),
    count: (collection, limit) => withSvcErrors(() => server.db.collection(collection).countDocuments({}, { limit })),
    countValues: (collection, field, limit) =>
      withSvcErrors(() => server.db.collection(collection).countDocuments({ [field]: { $ne: null } }, { limit })),
    estimateCount: (collection) => withSvcErrors(() => server.db.collection(collection).estimatedDocumentCount()),
    withLock: (work, options) => withLeaseLock(server, settings.leaseMs, registeredWhile(leases, work), options),
    isLocked: () => withSvcErrors(() => isLocked(server)),
    close: () => server.client.close(),
  };
}
