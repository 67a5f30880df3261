import type { Connection } from '../../../../core/dialect.ts';
import { convertingErrors } from '../../shared/errors.ts';
import { introspect, unsupportedObjects } from '../catalog/introspect.ts';
import { quoteIdentifier } from '../compile/names.ts';
import type { CassandraStep } from '../compile/step.ts';
import { updateRows } from '../data/update.ts';
import { clusterNow, ensureRecords, recordStore } from '../records/record-store.ts';
import { runSegments } from '../run/run.ts';
import { toSvcError } from './errors.ts';
import { Lease } from './lease.ts';
import type { Session } from './session.ts';
import type { Settings } from './settings.ts';
import { readColumns } from './system-schema.ts';

export function createConnection(session: Session, settings: Settings): Connection<CassandraStep> {
  const lease = new Lease(session, settings);
  const context = { session, settings, lease };
  const withSvcErrors = convertingErrors(toSvcError);
  return {
    server: `Cassandra ${session.version}`,
    run: (segments, epoch, _tookMs, observer) => runSegments(context, segments, epoch, observer),
    query: (text) => withSvcErrors(() => session.execute(text)),
    introspect: (collections) => withSvcErrors(() => introspect(session, collections)),
    unsupportedObjects: () => withSvcErrors(() => unsupportedObjects(session)),
    // The registry stores what the catalog cannot, so introspection returns the model unchanged.
    normalize: async (model) => model,
    records: (definition) => recordStore(session, definition),
    ensureTables: (definitions) => withSvcErrors(() => ensureRecords(session, settings, definitions)),
    update: (job) => withSvcErrors(() => updateRows(session, settings, job)),
    now: () => withSvcErrors(() => clusterNow(session)),
    count: (collection, limit) =>
      withSvcErrors(async () => {
        const [column = ''] = (await readColumns(session, collection)).keys();
        return (
          await session.rows(`SELECT ${quoteIdentifier(column)} FROM ${quoteIdentifier(collection)} LIMIT ?`, [limit])
        ).length;
      }),
    withLock: (work, options) => lease.withLock(work, options),
    isLocked: () => withSvcErrors(() => lease.isLocked()),
    close: () => session.close(),
  };
}
