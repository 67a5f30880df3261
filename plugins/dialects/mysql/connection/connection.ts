import type { Connection, WholeCatalog } from '../../../../core/dialect.ts';
import { convertingErrors } from '../../shared/errors.ts';
import { Mutex } from '../../shared/mutex.ts';
import { countRows } from '../../sql/count-rows.ts';
import { findLocks } from '../../sql/find-locks.ts';
import { recordStore } from '../../sql/record-store.ts';
import { type ExecSql, type Result, rowsOf, withTimeLimit } from '../../sql/session.ts';
import { introspectTables, readKeptNames } from '../catalog/introspect.ts';
import { normalizeExpressions, normalizeModel, withoutDefaultCollation } from '../catalog/normalize.ts';
import { normalizeObjects, readObjects } from '../catalog/objects.ts';
import { readCatalog } from '../catalog/read-catalog.ts';
import { withCurrentNames } from '../catalog/renamed-constraints.ts';
import { readShownTables, withShownStorage } from '../catalog/shown-tables.ts';
import { unmodelledIn, unmodelledStorage } from '../catalog/unmodelled.ts';
import { readUnsupportedObjects } from '../catalog/unsupported-objects.ts';
import { createGrammar } from '../compile/grammar.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import { type MysqlStep, tableCharset } from '../compile/step.ts';
import { updateSql } from '../compile/update-sql.ts';
import { estimateRows } from '../data/conversion-checks.ts';
import { createRecordBackend, createRecordGrammar, ensureTables } from '../records/record-backend.ts';
import { adaptSegments, adaptStatements } from '../run/adapt-to-version.ts';
import { effectOf, isCopied } from '../run/locks.ts';
import { type AlterContext, immediateSql, runDeferred } from '../run/online-alter.ts';
import { preflight } from '../run/preflight.ts';
import { previewSql } from '../run/preview-sql.ts';
import { type RunContext, runSegments } from '../run/run.ts';
import { parseVersion, type Variant } from '../variant.ts';
import { toSvcError } from './errors.ts';
import { ifLockFree, isLockTaken, sessionHoldsLock, withMigrationLock } from './lock.ts';
import { PERMISSION_PROBES, referenceProbe } from './permission-probes.ts';
import { openSession } from './session.ts';
import { type Settings, sessionSetupSql } from './settings.ts';
import { parseAddress } from './url.ts';

export async function connect(variant: Variant, url: string, settings: Settings): Promise<Connection<MysqlStep>> {
  const { traits } = variant;
  const session = await openSession(variant, parseAddress(url, variant.schemes), settings);
  const { serverInfo } = session;
  const version = parseVersion(serverInfo.version);
  const grammar = createGrammar(traits);
  const tableOptions = tableCharset(serverInfo.charset, traits.tableCollation);
  const defaultCollation = tableOptions === '' ? serverInfo.collation : traits.tableCollation;
  const recordGrammar = createRecordGrammar(variant);
  const short = withTimeLimit(session, settings.requestTimeoutMs);
  const records = createRecordBackend(short, recordGrammar, settings.lockRetries);
  const alterContext = (exec: ExecSql, allowCopy = false): AlterContext => ({
    exec,
    traits,
    version,
    database: serverInfo.database,
    allowCopy: allowCopy || settings.allowCopy,
    copyRows: settings.copyRows,
    onProgress: settings.onProgress,
    foldsTableNames: serverInfo.foldsTableNames,
  });
  const runContext: RunContext = {
    session,
    grammar: recordGrammar,
    restore: (autocommit) => `USE ${quoteIdentifier(serverInfo.database)}; ${sessionSetupSql(settings, autocommit)}`,
    lockHeld: sessionHoldsLock(serverInfo.database),
    lockRetries: settings.lockRetries,
    sqlOf: (step) => (step.kind === 'raw' ? step.sql : immediateSql({ traits, version }, tableOptions, step)),
    compoundStatement: traits.compoundStatement,
    runDeferred: (exec, plan, { allowCopy, onSent }) => runDeferred(alterContext(exec, allowCopy), plan, onSent),
  };
  const adapt = adaptStatements({ traits, version });
  const lockContext = { session, serverInfo, mutex: new Mutex() };
  const withSvcErrors = convertingErrors(toSvcError);
  const rows = (text: string): Promise<Result['rows']> => withSvcErrors(() => rowsOf(session.exec, text));
  const read = (collections?: readonly string[]) =>
    withSvcErrors(async () =>
      introspectTables(
        { traits, defaultCollation, asShown: false },
        await readCatalog(session.exec, traits, collections),
      ),
    );
  const readWhole = (asShown: boolean): Promise<WholeCatalog> =>
    withSvcErrors(async () => {
      const tables = await readCatalog(session.exec, traits);
      const others = await readUnsupportedObjects(session.exec, traits);
      const texts = await readShownTables(
        session.exec,
        tables.map(({ name }) => name),
      );
      const shown = asShown ? tables.map((table) => withShownStorage(table, texts.get(table.name))) : tables;
      const { model, unsupported } = introspectTables({ traits, defaultCollation, asShown }, shown);
      const unmodelled = [...texts].flatMap(([table, text]) => [
        ...unmodelledIn(table, text),
        ...(asShown ? [] : unmodelledStorage(table, text)),
      ]);
      return { model, unsupported: [...unsupported, ...others, ...unmodelled] };
    });
  return {
    server: `${variant.title} ${version.join('.')}`,
    run: (segments, epoch, tookMs, observer) =>
      runSegments(runContext, adaptSegments({ traits, version }, segments, observer), epoch, tookMs, observer),
    preflight: (statements, operations) =>
      withSvcErrors(() => session.exclusive((exec) => preflight(alterContext(exec), adapt(statements), operations))),
    preview: (statements, operations) =>
      withSvcErrors(async () => {
        const texts = await previewSql(session.exec, traits, adapt(statements));
        const report = await ifLockFree(lockContext, () =>
          session.exclusive((exec) => preflight(alterContext(exec), adapt(statements), operations, true)),
        );
        if (!report) return { texts, failures: [], copies: [] };
        const locks = await findLocks(
          (table) => estimateRows(session.exec, table),
          (statement, index) => effectOf(statement, isCopied(report.copies, index)),
          adapt(statements),
          operations,
        );
        return { texts, ...report, locks };
      }),
    finalTexts: (statements) => withSvcErrors(() => previewSql(session.exec, traits, adapt(statements))),
    query: rows,
    permissionProbes: PERMISSION_PROBES,
    referenceProbe,
    introspect: async (collections) => (await read(collections)).model,
    unsupportedObjects: async () => (await readWhole(false)).unsupported,
    introspectWhole: () => readWhole(true),
    kept: () => withSvcErrors(() => readKeptNames(session.exec)),
    objects: () => withSvcErrors(() => readObjects(session, traits)),
    normalizeObjects: (objects) => withSvcErrors(() => normalizeObjects(session, traits, objects)),
    normalize: (model) =>
      withSvcErrors(async () =>
        withCurrentNames(
          session.exec,
          traits,
          await normalizeExpressions(
            { session, traits, grammar, tableOptions },
            withoutDefaultCollation(normalizeModel(model), defaultCollation),
          ),
        ),
      ),
    records: (definition) => recordStore(records, definition),
    ensureTables: (definitions) => ensureTables(session, recordGrammar, definitions),
    async update(job) {
      const { count, update } = updateSql({ grammar, traits, version }, job);
      const [counted, changed] = await withSvcErrors(() => session.exec(`${count}; ${update}`));
      const modified = changed?.count ?? 0;
      // The update reads a newer snapshot than the count: other sessions may have written in between.
      return { matched: Math.max(Number(counted?.rows[0]?.matched), modified), modified };
    },
    async now() {
      const [row] = await withSvcErrors(() => rowsOf(short.exec, 'SELECT SYSDATE(3) AS now'));
      return new Date(`${String(row?.now).replace(' ', 'T')}Z`);
    },
    count: (collection, limit) => countRows(rows, { table: quoteIdentifier(collection), limit }),
    countValues: (collection, field, limit) =>
      countRows(rows, { table: quoteIdentifier(collection), field: quoteIdentifier(field), limit }),
    withLock: (work, options) => withMigrationLock(lockContext, work, options),
    isLocked: async () => (await rows(`SELECT 1 FROM DUAL WHERE ${isLockTaken(serverInfo.database)}`)).length > 0,
    close: () => session.close(),
  };
}
