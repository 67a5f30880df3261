import type { Connection, PermissionProbe } from '../../../../core/dialect.ts';
import { convertingErrors } from '../../shared/errors.ts';
import { introspect, introspectAs, unsupportedObjects } from '../catalog/introspect.ts';
import { normalizeObjects, readObjects } from '../catalog/read-objects.ts';
import { quoteIdentifier } from '../compile/names.ts';
import { normalize } from '../compile/normalize.ts';
import { type CassandraStep, registeredFields, statementFor } from '../compile/step.ts';
import { updateRows } from '../data/update.ts';
import { clusterNow, ensureRecords, recordStore } from '../records/record-store.ts';
import { runSegments } from '../run/run.ts';
import { toSvcError } from './errors.ts';
import { Lease } from './lease.ts';
import type { Session } from './session.ts';
import type { Settings } from './settings.ts';
import { readColumns } from './system-schema.ts';

/** In the check of a statement: the keyspace of the connection. */
const KEYSPACE = 'keyspace_name = :keyspace';

const MISSING = '"_svc_doctor_missing"';

/** The server checks permissions before it validates a statement. A table without a key cannot be created. */
const PERMISSION_PROBES: readonly PermissionProbe[] = [
  { needed: 'create tables', text: `CREATE TABLE ${MISSING} (x int)` },
  { needed: 'change tables', text: `ALTER TABLE ${MISSING} ADD x int` },
  { needed: 'drop tables', text: `DROP TABLE ${MISSING}` },
  { needed: 'write rows', text: `INSERT INTO ${MISSING} (x) VALUES (1)` },
];

const PAGE_SIZE = 5000;

/** The number of rows, up to `limit`, whose value of a column counts. */
async function countRows(
  session: Session,
  table: string,
  column: string,
  limit: number,
  counts: (value: unknown) => boolean = () => true,
): Promise<number> {
  const cql = `SELECT ${quoteIdentifier(column)} AS value FROM ${quoteIdentifier(table)}`;
  let count = 0;
  for (let state: string | undefined; ; ) {
    const page = await session.readPage(cql, [], Math.min(limit, PAGE_SIZE), state);
    count += page.rows.filter(({ value }) => counts(value)).length;
    if (count >= limit || page.state === undefined) return Math.min(count, limit);
    state = page.state;
  }
}

export function createConnection(session: Session, settings: Settings): Connection<CassandraStep> {
  const lease = new Lease(session, settings);
  const context = { session, settings, lease };
  const withSvcErrors = convertingErrors(toSvcError);
  return {
    server: `Cassandra ${session.version}`,
    run: (segments, epoch, _tookMs, observer) => runSegments(context, segments, epoch, observer),
    query: (text) =>
      withSvcErrors(() =>
        text.includes(KEYSPACE)
          ? session.rows(text.replace(KEYSPACE, 'keyspace_name = ?'), [session.keyspace])
          : session.execute(text),
      ),
    permissionProbes: PERMISSION_PROBES,
    introspect: (collections) => withSvcErrors(() => introspect(session, collections)),
    unsupportedObjects: () => withSvcErrors(() => unsupportedObjects(session)),
    objects: () => withSvcErrors(() => readObjects(session)),
    normalizeObjects: (objects) => withSvcErrors(() => normalizeObjects(session, objects)),
    introspectAs: (collection) => withSvcErrors(() => introspectAs(session, collection)),
    async adopt(collections, epoch) {
      const statements = collections.map((one) =>
        statementFor(`register ${one.name}`, {
          kind: 'register',
          table: one.name,
          registered: registeredFields(one),
        }),
      );
      const segments = statements.map((one) => ({ transactional: false, statements: [one], writes: [] }));
      const { failure } = await runSegments(context, segments, epoch);
      if (failure) throw failure.error;
    },
    // The registry stores what the catalog cannot.
    normalize: async (model) => normalize(model),
    records: (definition) => recordStore(session, definition),
    ensureTables: (definitions) => withSvcErrors(() => ensureRecords(session, settings, definitions)),
    update: (job) => withSvcErrors(() => updateRows(session, settings, job)),
    now: () => withSvcErrors(() => clusterNow(session)),
    count: (collection, limit) =>
      withSvcErrors(async () => {
        const [column = ''] = (await readColumns(session, collection)).keys();
        return countRows(session, collection, column, limit);
      }),
    countValues: (collection, field, limit) =>
      withSvcErrors(() => countRows(session, collection, field, limit, (value) => value !== null)),
    withLock: (work, options) => lease.withLock(work, options),
    isLocked: () => withSvcErrors(() => lease.isLocked()),
    close: () => session.close(),
  };
}
