import type { Connection, Dialect } from '../../../core/dialect.ts';
import { definePlugin } from '../../../core/plugin.ts';
import { convertingErrors } from '../shared/errors.ts';
import { introspect, unsupportedObjects } from './catalog/introspect.ts';
import { compile } from './compile/compile.ts';
import { NAME, nameRules, quoteIdentifier } from './compile/names.ts';
import type { CassandraStep } from './compile/step.ts';
import { columnTypes } from './compile/types.ts';
import { unsupported } from './compile/unsupported-features.ts';
import { toSvcError } from './connection/errors.ts';
import { Lease } from './connection/lease.ts';
import { readColumns } from './connection/schema-agreement.ts';
import { openSession, type Session } from './connection/session.ts';
import { type Settings, settingsOf } from './connection/settings.ts';
import { identify, parseUrl } from './connection/url.ts';
import { updateRows } from './data/update.ts';
import { clusterNow, ensureRecords, recordStore } from './records/record-store.ts';
import { runSegments } from './run/run.ts';

/** Apache Cassandra 4.0 and later. */
export const cassandra: Dialect<CassandraStep> = {
  name: NAME,
  types: columnTypes,
  capabilities: { transactionalDdl: false, runsSegmentsSingly: true, names: nameRules, unsupported },
  compile,
  normalize: (model) => model,
  identify,
  async connect(url, options) {
    const address = parseUrl(url);
    const settings = settingsOf(options, address);
    return createConnection(await openSession(address, settings), settings);
  },
};

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

export default definePlugin({
  name: 'cassandra',
  apply(kernel) {
    kernel.dialects.register('cassandra', cassandra);
  },
});
