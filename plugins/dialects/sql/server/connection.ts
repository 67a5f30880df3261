import type { Connection, WholeCatalog } from '../../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import type { AnyRecordDefinition, RecordWrite } from '../../../../core/records.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { Collection, Constraint, Field, SchemaModel } from '../../../../core/schema/model.ts';
import { convertingErrors, lockLostError } from '../../shared/errors.ts';
import { isLeased, type LeaseStore, leaseTable, withLeaseLock } from '../../shared/lease.ts';
import { runSegments, type SegmentSteps } from '../../shared/run-segments.ts';
import { columnDefinition } from '../column.ts';
import { countRows } from '../count-rows.ts';
import type { EngineErrors } from '../engine-errors.ts';
import type { Grammar } from '../grammar.ts';
import { recordStore, recordTableStatements } from '../record-store.ts';
import { oneRowSql } from '../record-values.ts';
import { writeRecord } from '../record-write.ts';
import { type ExecSql, rowsOf, withLowerCaseNames } from '../session.ts';
import { recordBackend, runUpdate, type SyntaxGrammar, withExactNumbers } from '../syntax-records.ts';
import { assertEmpty } from '../text-catalog/run.ts';
import { quoteIdentifier } from '../text-catalog/syntax.ts';
import { normalizeSqlServer, toWholeCatalog } from './catalog.ts';
import { type CatalogQueries, type QueryAll, readCatalogRows } from './catalog-rows.ts';
import type { ServerSession } from './driver.ts';
import type { SqlServerStep } from './grammar.ts';
import { preconditionsOf, preflight } from './preflight.ts';
import { namesQuery, type SqlServerSyntax } from './syntax.ts';

/** What a connection needs of its engine. */
export interface ServerContext {
  readonly syntax: SqlServerSyntax;
  readonly grammar: Grammar<SqlServerStep>;
  readonly records: SyntaxGrammar;
  readonly errors: EngineErrors;
  readonly session: ServerSession;
  /** Another session on the same database. */
  openAnother(): Promise<ServerSession>;
  catalog(only?: string): CatalogQueries;
}

const LEASES = quoteIdentifier(leaseTable.collection);
const EPOCH = quoteIdentifier('epoch');
/** Another session has created the same object at the same time. */
const CREATED_CONCURRENTLY: ReadonlySet<string> = new Set(['collection_exists', 'field_exists', 'index_exists']);

/** A connection to a server. Each statement is a transaction on its own, and the migration lock is a lease. */
export function createServerConnection(context: ServerContext): Connection<SqlServerStep> {
  const { syntax, records, errors, session } = context;
  const translateErrors = convertingErrors((error) => errors.toSvcError(error));
  const rows = (text: string) => translateErrors(() => rowsOf(session.exec, text));
  const backend = recordBackend(records, errors, session.exec);
  const readCatalog = (only?: string, queryAll = session.queryAll): Promise<WholeCatalog> =>
    translateErrors(async () =>
      toWholeCatalog(syntax, context.grammar, await readCatalogRows(queryAll, context.catalog(only))),
    );
  const readTables = async (names: readonly string[] | undefined, queryAll?: QueryAll) => {
    const { model } = await readCatalog(undefined, queryAll);
    return names ? new Map([...model].filter(([name]) => names.includes(name))) : model;
  };

  async function runStep(exec: ExecSql, step: SqlServerStep): Promise<void> {
    await assertEmpty(
      exec,
      preconditionsOf(step).map(({ query }) => query),
    );
    await exec(step.kind === 'raw' ? step.sql : step.parts.join(''));
  }
  async function writeRecords(exec: ExecSql, writes: readonly RecordWrite[], elapsedMs: number) {
    const written: Readonly<Record<string, Date | number>>[] = [];
    for (const write of writes) written.push(await writeRecord({ ...backend, exec }, write, elapsedMs));
    return written;
  }
  const segmentSteps = (epoch: number): SegmentSteps<SqlServerStep> => ({
    toSvcError: errors.toSvcError,
    runStep: (step) =>
      session.exclusive(async (exec) => {
        if (epoch > 0) await assertEpoch(exec, epoch);
        await runStep(exec, step);
      }),
    writeRecords: (writes, elapsedMs) =>
      session.transaction(async (exec) => {
        if (epoch > 0) await holdEpoch(exec, epoch);
        return writeRecords(exec, writes, elapsedMs);
      }),
    ...(syntax.transactionalDdl && {
      transaction: (work) =>
        session.transaction(async (exec, queryAll) => {
          if (epoch > 0) await assertEpoch(exec, epoch);
          const result = await work({
            runStep: (step) => runStep(exec, step),
            writeRecords: (writes, elapsedMs) => writeRecords(exec, writes, elapsedMs),
            introspect: (names) => readTables(names, queryAll),
          });
          // Not earlier: it keeps the other session from renewing the lease.
          if (epoch > 0) await holdEpoch(exec, epoch);
          return result;
        }),
    }),
  });
  const check = (query: string) => translateErrors(() => assertEmpty(session.exec, [query]));

  let isClosed = false;
  const connection: Connection<SqlServerStep> = {
    server: session.server,
    run: (segments, epoch, tookMs, observer) => runSegments(segmentSteps(epoch), segments, tookMs, observer),
    preflight: (statements, operations) => preflight(check, statements, operations),
    async preview(statements, operations) {
      return { ...(await preflight(check, statements, operations)), texts: statements.map(({ text }) => text) };
    },
    query: async (text) => (await rows(text)).map(withExactNumbers),
    introspect: (names) => readTables(names),
    unsupportedObjects: async () => (await readCatalog()).unsupported,
    introspectWhole: () => readCatalog(),
    normalize: (model) => normalizeWithServer(context, model, readCatalog),
    ...leaseStoreOf(context, session),
    update: (job) => translateErrors(() => runUpdate(records, session.exec, job)),
    count: (collection, limit) => countRows(rows, { table: quoteIdentifier(collection), limit }, records),
    countValues: (collection, field, limit) =>
      countRows(rows, { table: quoteIdentifier(collection), field: quoteIdentifier(field), limit }, records),
    async withLock(work, options) {
      if (isClosed) throw new SvcError('connection_lost', 'The connection is closed.');
      // A session of its own, so that the lease is renewed while a statement of `work` runs.
      const keeper = await context.openAnother();
      try {
        return await withLeaseLock(leaseStoreOf(context, keeper), work, options);
      } finally {
        await keeper.close();
      }
    },
    isLocked: () => isLeased(connection),
    close() {
      isClosed = true;
      return session.close();
    },
  };
  return connection;
}

/** Records, their tables and the clock, in a session. */
function leaseStoreOf({ syntax, records, errors }: ServerContext, session: ServerSession): LeaseStore {
  const translateErrors = convertingErrors((error) => errors.toSvcError(error));
  const backend = recordBackend(records, errors, session.exec);
  const ensureTable = async (definition: AnyRecordDefinition) => {
    const found = await rowsOf(session.exec, namesQuery(syntax, 'column', definition.collection));
    const columns = found.map((row) => String(withLowerCaseNames(row).name));
    for (const text of recordTableStatements(records, '', definition, columns)) {
      await translateErrors(() => session.exec(text)).catch((error) => {
        // Or as a duplicate key of the catalog.
        if (errors.isDuplicate(error) || (isSvcError(error) && CREATED_CONCURRENTLY.has(error.code))) return;
        throw error;
      });
    }
  };
  return {
    records: (definition) => recordStore(backend, definition),
    ensureTables: (definitions) =>
      translateErrors(async () => {
        for (const definition of definitions) await ensureTable(definition);
      }),
    async now() {
      const [row] = await translateErrors(() =>
        rowsOf(session.exec, `SELECT ${records.clock} AS svc_now FROM ${oneRowSql(records)}`),
      );
      return records.read(Object.values(row ?? {})[0], { type: 'timestamp' }) as Date;
    },
  };
}

async function assertEpoch(exec: ExecSql, epoch: number): Promise<void> {
  const current = await rowsOf(exec, `SELECT 1 AS svc_one FROM ${LEASES} WHERE ${EPOCH} = ${epoch}`);
  if (current.length === 0) throw lockLostError();
}

/** The epoch cannot end before the transaction does, because its row is locked. */
async function holdEpoch(exec: ExecSql, epoch: number): Promise<void> {
  const [held] = await exec(`UPDATE ${LEASES} SET ${EPOCH} = ${EPOCH} WHERE ${EPOCH} = ${epoch}`);
  if (held?.count !== 1) throw lockLostError();
}

/** The normal form, with the expressions of each table as the server spells them. */
async function normalizeWithServer(
  context: ServerContext,
  model: SchemaModel,
  readCatalog: (only?: string) => Promise<WholeCatalog>,
): Promise<SchemaModel> {
  const { syntax, grammar, session } = context;
  const normal = new Map(normalizeSqlServer(syntax, grammar, model));
  const { scratchTable } = syntax;
  if (scratchTable === undefined) return normal;
  for (const [at, table] of [...normal.values()].entries()) {
    const checks = [...table.constraints.values()].filter((one) => one.type === 'check');
    const fields = [...table.fields.values()];
    const isExpressionDefault = ({ default: value }: Field) => value !== undefined && isExpression(value);
    if (checks.length === 0 && !fields.some(isExpressionDefault)) continue;
    const scratch = `_svc_scratch_${at}`;
    const nameOf = (index: number) => `${scratch}_${index}`;
    const lines = [
      ...fields.map(({ autoGenerate: _, required: __, ...field }) => columnDefinition(grammar, field, table.name)),
      ...checks.map((one, index) => `CONSTRAINT ${quoteIdentifier(nameOf(index))} CHECK (${one.expression})`),
    ];
    // A server that refuses the table refuses the migration as well, with its own error.
    const isCreated = await session.exec(`${scratchTable} ${quoteIdentifier(scratch)} (${lines.join(', ')})`).then(
      () => true,
      () => false,
    );
    if (!isCreated) continue;
    const spelled = (await readCatalog(scratch)).model.get(scratch);
    await session.exec(`DROP TABLE ${quoteIdentifier(scratch)}`);
    const written = checks.map((one, index): [string, Constraint] => {
      const found = spelled?.constraints.get(nameOf(index));
      return [one.name, found?.type === 'check' ? { ...one, expression: found.expression } : one];
    });
    normal.set(table.name, withSpelling(table, spelled, written));
  }
  return normal;
}

function withSpelling(
  table: Collection,
  spelled: Collection | undefined,
  checks: readonly [string, Constraint][],
): Collection {
  const fields = [...table.fields].map(([name, field]): [string, Field] => {
    const found = spelled?.fields.get(name);
    const { default: value, ...rest } = field;
    if (!found || value === undefined || !isExpression(value)) return [name, field];
    const read = {
      ...(found.default !== undefined && { default: found.default }),
      ...(found.autoGenerate && { autoGenerate: found.autoGenerate }),
    };
    return [name, { ...rest, ...read }];
  });
  return { ...table, fields: new Map(fields), constraints: new Map([...table.constraints, ...checks]) };
}
