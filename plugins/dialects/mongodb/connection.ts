import type { Connection } from '../../../core/dialect.ts';
import { refusal } from './errors.ts';
import { readCatalog } from './introspect.ts';
import { checkEpoch, exclusively, isLeased, type Lease } from './lease.ts';
import { clockOf, type Server } from './open.ts';
import type { Place } from './place.ts';
import { ensureRecords, recordStore } from './records.ts';
import { runSegments } from './run.ts';
import { runCommand } from './run-command.ts';
import type { Settings } from './settings.ts';
import { update } from './update.ts';

export function connectionOver(server: Server, settings: Settings): Connection {
  /** The leases that callers of this connection hold, by epoch: there may be several, one after the other. */
  const held = new Map<number, Lease>();
  const hold = (epoch: number): Promise<void> => held.get(epoch)?.hold() ?? checkEpoch(server, epoch);
  const placeOf = (epoch: number): Place => ({
    server,
    settings,
    epoch,
    hold: () => hold(epoch),
  });
  const free: Place = { server, settings, epoch: 0, hold: () => Promise.resolve() };
  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw refusal(error);
    }
  };
  return {
    server: server.version,
    run: (segments, epoch, _tookMs, underway) => runSegments(placeOf(epoch), segments, underway),
    query: (text) =>
      told(async () => {
        const answer = await runCommand(server, text);
        const rows: unknown = answer.cursor?.firstBatch ?? [answer];
        return rows as readonly Readonly<Record<string, unknown>>[];
      }),
    introspect: (collections) => told(async () => (await readCatalog(server, settings, collections)).model),
    unreadable: () => told(async () => (await readCatalog(server, settings)).unreadable),
    seen: async (model) => model,
    records: (definition) => recordStore(server, definition, hold),
    ensure: (definitions) => told(() => ensureRecords(server, definitions)),
    update: (job) => told(() => update(free, job)),
    now: () => told(() => clockOf(server)),
    count: (collection, limit) => told(() => server.db.collection(collection).countDocuments({}, { limit })),
    exclusively: (work, options) =>
      exclusively(
        server,
        settings.leaseMs,
        async (lease) => {
          held.set(lease.epoch, lease);
          try {
            return await work(lease.epoch);
          } finally {
            held.delete(lease.epoch);
          }
        },
        options,
      ),
    isLocked: () => told(() => isLeased(server)),
    close: () => server.client.close(),
  };
}
