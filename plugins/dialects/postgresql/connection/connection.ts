import type { Connection, PreflightReport, Statement, WholeCatalog } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { metaTable } from '../../../../core/migration/history-table.ts';
import type { MigrationOperation } from '../../../../core/schema/operation.ts';
import { convertingErrors } from '../../shared/errors.ts';
import type { Mutex } from '../../shared/mutex.ts';
import { countRows } from '../../sql/count-rows.ts';
import { findLocks } from '../../sql/find-locks.ts';
import { recordStore } from '../../sql/record-store.ts';
import { type Result, rowsOf, type Session, withTimeLimit } from '../../sql/session.ts';
import { toModel } from '../catalog/introspect.ts';
import { normalize, normalizeExpressions } from '../catalog/normalize.ts';
import { normalizeObjects, readObjects } from '../catalog/objects.ts';
import { readCatalog, readKeptNames } from '../catalog/read-catalog.ts';
import { readUnsupportedObjects } from '../catalog/unsupported-objects.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { qualified, quoteIdentifier } from '../compile/names.ts';
import { SCHEMA_COMMENT } from '../compile/online-steps.ts';
import { DOLLAR_TAG } from '../compile/plpgsql-guards.ts';
import type { PostgresqlStep } from '../compile/step.ts';
import { runUpdate } from '../data/update.ts';
import { notifyChannel } from '../records/notifications.ts';
import { createRecordBackend, ensureTables } from '../records/record-backend.ts';
import type { RunContext } from '../run/context.ts';
import { findCopies } from '../run/copies.ts';
import { withFreeRetypes } from '../run/free-retypes.ts';
import { lockShortage } from '../run/lock-shortage.ts';
import { effectOf } from '../run/locks.ts';
import { preflight } from '../run/preflight.ts';
import { countTable } from '../run/row-count.ts';
import { RowEstimates } from '../run/row-estimates.ts';
import { runSegments } from '../run/run.ts';
import { unknownRoles } from '../run/unknown-roles.ts';
import { unreadableSchemas } from '../run/unreadable-schemas.ts';
import { findViolations } from '../run/violations.ts';
import { codeOf, poolerError, toSvcError } from './errors.ts';
import { type LockContext, lockHeldByAnySession, withMigrationLock } from './lock.ts';
import { permissionProbes, referenceProbe } from './permission-probes.ts';
import { DISABLE_TIMEOUTS, type Settings } from './settings.ts';

export interface OpenSession {
  readonly session: Session;
  readonly settings: Settings;
  readonly mutex: Mutex;
  /** SQL that restores the settings the session was opened with. */
  readonly restoreSettings: string;
  watch(channel: string, notify: (key?: string) => void): Promise<() => Promise<void>>;
}

/** A connection over an open session of a server or of PGlite. */
export async function createConnection({
  session,
  settings,
  mutex,
  restoreSettings,
  watch,
}: OpenSession): Promise<Connection<PostgresqlStep>> {
  const short = withTimeLimit(session, settings.requestTimeoutMs);
  const { name, backend, exists, version, checksClient, present } = await readSessionInfo(short, settings);
  const schema = `${quoteIdentifier(name)}.`;
  const { grants } = settings;
  const schemas = { home: name, others: (settings.schemas ?? []).filter((one) => one !== name), grants };
  const lockContext: LockContext = {
    session,
    schema,
    backend,
    mutex,
    missingSchema: exists ? undefined : quoteIdentifier(name),
  };
  const restoreAll = `${restoreSettings}; SELECT ${DISABLE_TIMEOUTS}${checksClient ? `, ${ENABLE_CLIENT_CHECK}` : ''}`;
  const recordBackend = createRecordBackend(short, schema, settings.lockRetries);
  const withSvcErrors = convertingErrors(toSvcError);
  const rows = (text: string): Promise<Result['rows']> => withSvcErrors(() => rowsOf(session.exec, text));
  const readTables = (collections?: readonly string[], exec = session.exec) =>
    withSvcErrors(async () => toModel(await readCatalog(exec, schemas, collections)));
  const runContext: RunContext = {
    session,
    schema,
    settings,
    restoreSettings: restoreAll,
    introspect: async (exec, collections) => (await readTables(collections, exec)).model,
  };
  const introspectWhole = async (): Promise<WholeCatalog> => {
    const { model, unsupportedObjects } = await readTables();
    const others = await withSvcErrors(() => readUnsupportedObjects(session.exec, schemas));
    return { model, unsupported: [...unsupportedObjects, ...others] };
  };
  const findProblems = async (
    statements: readonly Statement<PostgresqlStep>[],
    operations: readonly MigrationOperation[],
    estimates = new RowEstimates(session.exec, schema),
    certain = withFreeRetypes(session.exec, schema, statements),
  ): Promise<PreflightReport> => {
    const copying = await findCopies(estimates, settings.allowCopy, await certain);
    const failures = [
      ...unreadableSchemas(schemas, operations),
      ...(await unknownRoles(session.exec, operations)),
      ...(await preflight(session.exec, schemas, operations)),
      ...copying.failures,
      ...(await findViolations(session.exec, schema, statements, operations)),
    ];
    return { failures: failures.sort((a, b) => a.statement - b.statement), copies: copying.copies };
  };
  return {
    server: `PostgreSQL ${Math.floor(version / 10000)}.${version % 10000}`,
    ...(settings.schema !== undefined && {
      preamble: [
        ...(exists ? [] : [`CREATE SCHEMA IF NOT EXISTS ${quoteIdentifier(name)}`]),
        `SET search_path TO ${quoteIdentifier(name)}`,
      ],
    }),
    run: (segments, epoch, tookMs, observer) => runSegments(runContext, segments, epoch, tookMs, observer),
    preflight: (statements, operations) => withSvcErrors(() => findProblems(statements, operations)),
    preview: (statements, operations) =>
      withSvcErrors(async () => {
        const estimates = new RowEstimates(session.exec, schema);
        const certain = withFreeRetypes(session.exec, schema, statements);
        return {
          ...(await findProblems(statements, operations, estimates, certain)),
          locks: await findLocks(
            (table) => estimates.of(table),
            (statement, at) => effectOf(statement, statements[at - 1]),
            await certain,
            operations,
          ),
          texts: statements.map(({ text }) => text),
        };
      }),
    lockShortage: (locks) => withSvcErrors(() => lockShortage(session, locks)),
    query: (text) => rows(text.replaceAll(SCHEMA_COMMENT, () => schema)),
    permissionProbes: permissionProbes(schema, present),
    referenceProbe: (references) => referenceProbe(schema, references),
    introspect: async (collections) => (await readTables(collections)).model,
    unsupportedObjects: async () => (await introspectWhole()).unsupported,
    introspectWhole,
    kept: () => withSvcErrors(() => readKeptNames(session.exec, schemas)),
    ...(!grants && { unreadKinds: new Set(['grants']) }),
    objects: () => withSvcErrors(() => readObjects(session, schemas)),
    normalizeObjects: (found) => withSvcErrors(() => normalizeObjects(session, schemas, found)),
    normalize: (model) => withSvcErrors(async () => normalizeExpressions(session, normalize(model), schemas)),
    records: (definition) => recordStore(recordBackend, definition),
    ensureTables: (definitions) => ensureTables(session, schema, definitions),
    update: (job) => runUpdate(session, job, schema, settings.lockRetries),
    async now() {
      const [row] = await withSvcErrors(() => rowsOf(short.exec, 'SELECT clock_timestamp() AS now'));
      return new Date(row?.now as Date | string);
    },
    count: (collection, limit) => withSvcErrors(() => countTable(session.exec, qualified(collection, schema), limit)),
    countValues: (collection, field, limit) =>
      countRows(rows, { table: qualified(collection, schema), field: quoteIdentifier(field), limit }),
    watch: (topic, notify) => watch(notifyChannel(schema, topic), notify),
    withLock: (work, options) => withMigrationLock(lockContext, work, options),
    isLocked: async () => (await rows(`SELECT 1 FROM ${lockHeldByAnySession(schema)}`)).length > 0,
    close: () => session.close(),
  };
}

interface SessionInfo {
  /** The schema where tables live. */
  readonly name: string;
  /** The process id of the server's backend. */
  readonly backend: number;
  readonly exists: boolean;
  /** `server_version_num`: 150020 for 15.20. */
  readonly version: number;
  /** The server checks during a statement whether its client is still connected. */
  readonly checksClient: boolean;
  /** Those of the schemas that exist. */
  readonly present: readonly string[];
}

const MINIMUM_VERSION = 120000;
/** A setting of the startup packet, with a value that is not the server's default. */
const MESSAGE_LEVEL = "current_setting('client_min_messages')";
const EXPECTED_MESSAGE_LEVEL = 'warning';
/** The first schema of the search_path with tables of svc. */
const HISTORY_SCHEMA = `(SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(${quoteLiteral(metaTable.collection)}))`;
/** The backend of a dead client ends within this time, which releases the lock. */
const ENABLE_CLIENT_CHECK = "set_config('client_connection_check_interval', '200ms', false)";

/** Of other schemas that are listed, the first one with tables of svc. */
const historyAmong = (schemas: readonly string[]): string =>
  `(SELECT min(n.nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = ${quoteLiteral(metaTable.collection)} AND n.nspname IN (${schemas.map(quoteLiteral).join(', ')}))`;

const presentAmong = (schemas: readonly string[]): string =>
  `(SELECT json_agg(nspname ORDER BY nspname) FROM pg_namespace WHERE nspname IN (${schemas.map(quoteLiteral).join(', ')}))`;

async function readSessionInfo(session: Session, { schema, schemas, createSchema }: Settings): Promise<SessionInfo> {
  const version = "current_setting('server_version_num')::int";
  const exists =
    schema === undefined ? 'true' : `to_regnamespace(${quoteLiteral(quoteIdentifier(schema))}) IS NOT NULL`;
  const query = (clientCheck: string) =>
    rowsOf(
      session.exec,
      `SELECT current_schema() AS name, pg_backend_pid() AS backend, ${version} AS version, ${exists} AS exists, ${schemas === undefined ? HISTORY_SCHEMA : `COALESCE(${HISTORY_SCHEMA}, ${historyAmong(schemas)})`} AS history_schema, ${schemas === undefined ? 'NULL' : presentAmong(schemas)} AS present, ${MESSAGE_LEVEL} AS level, ${DISABLE_TIMEOUTS} AS timeouts${clientCheck}`,
    );
  const rows = await query(`, CASE WHEN ${version} >= 140000 THEN ${ENABLE_CLIENT_CHECK} END AS client_check`)
    // Some platforms do not support the check.
    .catch((error) => (codeOf(error) === '22023' ? query('') : Promise.reject(error)))
    .catch((error) => {
      throw toSvcError(error);
    });
  const row = rows[0];
  if (row?.level !== EXPECTED_MESSAGE_LEVEL) throw poolerError('It does not forward the settings of the connection.');
  if (Number(row?.version) < MINIMUM_VERSION) {
    throw new SvcError('not_supported', 'This PostgreSQL server is too old.', {
      why: `It has version ${Math.floor(Number(row?.version) / 10000)}; svc supports 12 and later.`,
    });
  }
  const current = row?.name;
  const name = schema ?? (typeof current === 'string' ? current : undefined);
  if (name === undefined) {
    throw new SvcError('config_invalid', 'The database user has no schema for its tables.', {
      why: 'No schema in its search_path exists.',
      next: ["Name one next to the URL in svc.config: schema: 'public'."],
    });
  }
  if (name.includes(DOLLAR_TAG)) {
    throw new SvcError('config_invalid', `The schema "${name}" cannot be used.`, {
      why: `Its name contains ${DOLLAR_TAG}, which svc uses to quote PL/pgSQL blocks.`,
      state: 'Nothing was changed.',
      next: ['Use another schema, or rename this one: ALTER SCHEMA … RENAME TO …'],
    });
  }
  if (row?.exists !== true && !createSchema) throw missingSchemaError(name);
  const existing = row?.history_schema;
  if ((schema === undefined || schemas !== undefined) && typeof existing === 'string' && existing !== name)
    throw ambiguousSchemaError(existing, name, schemas === undefined ? 'The search_path' : '"schemas"');
  return {
    name,
    backend: Number(row?.backend),
    exists: row?.exists === true,
    version: Number(row?.version),
    checksClient: typeof row?.client_check === 'string',
    present: Array.isArray(row?.present) ? row.present.map(String) : [name],
  };
}

/** A mistyped schema would be an empty database, where every migration runs again. */
function missingSchemaError(name: string): SvcError {
  return new SvcError('config_invalid', `The schema "${name}" does not exist.`, {
    why: 'svc does not create a schema unless asked to.',
    state: 'Nothing was changed.',
    next: [
      'Correct its name next to the URL in svc.config.',
      `Or create it: CREATE SCHEMA ${quoteIdentifier(name)}`,
      'Or let the first migration create it: options: { createSchema: true }',
    ],
  });
}

/** Without this error every migration would run again, and the new tables would hide the existing ones. */
function ambiguousSchemaError(existing: string, name: string, list: string): SvcError {
  return new SvcError(
    'config_invalid',
    `The tables of svc are in the schema "${existing}", but new tables would be created in "${name}".`,
    {
      why: `${list} lists "${name}" before "${existing}".`,
      state: 'Nothing was changed.',
      next: [
        `Name the schema next to the URL in svc.config: schema: '${existing}' to use the existing tables, schema: '${name}' to start with an empty history.`,
      ],
    },
  );
}
