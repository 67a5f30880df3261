import type {
  Connection,
  ConnectOptions,
  Dialect,
  Progress,
  UnsupportedObject,
  UpdateJob,
  UpdateResult,
} from '../../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import {
  type Collection,
  deserializeCollection,
  FIELD_TYPES,
  type Field,
  type SchemaModel,
  type SerializedCollection,
  serializeCollection,
} from '../../../../core/schema/model.ts';
import type { NameRules } from '../../../../core/schema/names.ts';
import type { Feature, UnsupportedFeatures } from '../../../../core/schema/unsupported-features.ts';
import {
  convertingErrors,
  invalidUrlError,
  lockLostError,
  TABLE_EXISTS_REMEDIES,
  unrecognizedError,
} from '../errors.ts';
import { isLeased, withLeaseLock } from '../lease.ts';
import { runSegments } from '../run-segments.ts';
import { changedValues, compileKeyValue, type KeyValueStep, type RowChange, rowsExistError } from './compile.ts';
import type { ExpectedText, KeyValueDriver, RowOutcome, RowWrite } from './driver.ts';
import { ensureIndexes, fenceOf, keyValueRecords, writeRecords } from './records.ts';
import { decodeRow, encodeRow, rowUpdate, type TextRow } from './text-rows.ts';

/** The sorted set with the names of all tables. */
const TABLES = '_svc_tables';
const tableKey = (table: string): string => `${TABLES}/${table}`;
/** Tables at most in a database. */
const MAX_TABLES = 1_000_000;

/** What no dialect of `keyValueDialect` supports. An engine adds what it lacks, and reasons of its own. */
export const UNSUPPORTED_BY_KEY_VALUE: UnsupportedFeatures = {
  ...lacking('The key of a row contains the value of one field.', 'Mark one field with primaryKey: true.', [
    'tableWithoutKey',
    'compositeKey',
  ]),
  ...lacking('The key of a row contains the value of its key field.', 'Copy the rows to a new table.', [
    'changeKey',
    'primaryKeyConstraint',
  ]),
  ...lacking('The engine accepts rows with any fields.', 'Validate rows in the application.', ['required', 'check']),
  ...lacking('The engine does not compare rows.', 'Claim the value in the application, with a key of its own.', [
    'unique',
    'uniqueConstraint',
    'uniqueIndex',
  ]),
  ...lacking('The engine does not compare rows.', 'Check the reference in the application.', [
    'foreignKey',
    'setDefaultAction',
  ]),
  ...lacking('The engine finds rows by their key only.', 'Store the keys of the rows by value in the application.', [
    'index',
  ]),
  ...lacking('The engine fills in no values.', 'Generate the value in the application.', [
    'generated',
    'generatedInteger',
  ]),
  ...lacking('The engine evaluates no expressions.', 'Use a literal or "now".', ['expressionDefault']),
  ...lacking('A value is a text that may not fit the new type.', 'Add a field and fill it with db.update.', [
    'changeType',
  ]),
  ...lacking('Rows last until they are deleted.', 'Leave the option out.', ['temporaryTable', 'unloggedTable']),
  ...lacking('They are options of another engine.', 'Leave the options out.', [
    'mongoOptions',
    'dynamoOptions',
    'cassandraOptions',
  ]),
};

function lacking(why: string, next: string, features: readonly Feature[]): UnsupportedFeatures {
  return Object.fromEntries(features.map((feature) => [feature, { why, next }]));
}

/** Values are texts; JSON and arrays are JSON texts. */
const TYPES = Object.fromEntries(
  FIELD_TYPES.map((type) => [type, type === 'binary' || type === 'blob' ? 'bytes' : `${type} as text`]),
) as Dialect['types'];

const NAMES: NameRules = {
  max: 255,
  unit: 'bytes',
  problem: (name, kind) =>
    kind === 'table' && name.includes(':') ? 'In the key of a row, a colon ends the name of the table.' : undefined,
};

export interface KeyValueDialect extends Pick<Dialect, 'name' | 'identify'> {
  readonly unsupported: UnsupportedFeatures;
  /**
   * Why the engine or the driver cannot have a name, as a sentence: for a field that the driver has of its own, such as one
   * with the key. Undefined if it can.
   */
  readonly nameProblem?: NameRules['problem'];
  /** Throws `url_invalid`, `connection_failed`, `authentication_failed` or `driver_missing`. */
  open(url: string, options: ConnectOptions): Promise<KeyValueDriver>;
}

/**
 * Creates a dialect for an engine without tables that changes several keys atomically, under conditions. A table is a
 * definition that svc stores, and the rows with the keys `<table>:<id>`.
 *
 * @example
 * const dialect = keyValueDialect({ name: 'redis', unsupported: UNSUPPORTED_BY_KEY_VALUE, identify, open });
 */
export function keyValueDialect(own: KeyValueDialect): Dialect<KeyValueStep> {
  const { name, unsupported, open } = own;
  const identify: Dialect['identify'] = (url) => {
    try {
      return own.identify(url);
    } catch (error) {
      if (!(error instanceof TypeError) || !('code' in error) || error.code !== 'ERR_INVALID_URL') throw error;
      throw invalidUrlError(`a ${name} database`, url, 'It is not a URL.', [`Write ${name}:// and an address.`]);
    }
  };
  const names: NameRules = {
    ...NAMES,
    problem: (checked, kind) => NAMES.problem?.(checked, kind) ?? own.nameProblem?.(checked, kind),
  };
  const rules = { name, names, unsupported };
  return {
    name,
    types: TYPES,
    capabilities: { transactionalDdl: false, runsSegmentsSingly: true, names, unsupported },
    compile: (operation, before) => compileKeyValue(rules, operation, before),
    normalize: (model) => model,
    identify,
    async connect(url, options) {
      identify(url);
      return keyValueConnection(name, await open(url, options), options);
    },
  };
}

function keyValueConnection(
  name: string,
  driver: KeyValueDriver,
  { onProgress }: ConnectOptions,
): Connection<KeyValueStep> {
  const toSvcError = (error: unknown): SvcError => {
    const converted = driver.toSvcError(error);
    return isSvcError(converted) ? converted : unrecognizedError(name, error);
  };
  const convert = convertingErrors(toSvcError);
  const connection: Connection<KeyValueStep> = {
    ...(driver.server !== undefined && { server: driver.server }),
    run: (segments, epoch, tookMs, observer) =>
      runSegments(
        {
          runStep: (step) => runStep(driver, step, epoch, onProgress),
          writeRecords: (writes, elapsedMs) => writeRecords(driver, writes, epoch, elapsedMs),
          toSvcError,
          isRefusal: (error, { kind }) => kind === 'raw' && isSvcError(error) && error.code === 'value_invalid',
        },
        segments,
        tookMs,
        observer,
      ),
    query: (text) => convert(() => driver.query(text)),
    introspect: (names) => convert(() => readTables(driver, names)),
    introspectAs: (collection) => convert(() => readAs(driver, collection)),
    adopt: (collections, epoch) => convert(() => adopt(driver, collections, epoch)),
    unsupportedObjects: () => convert(async () => findUnknownKeys(driver, await readTables(driver))),
    normalize: async (model) => model,
    records: (definition) => keyValueRecords(driver, definition, convert),
    ensureTables: (definitions) => convert(() => ensureIndexes(driver, definitions, convert)),
    update: (job) => convert(() => runUpdate(driver, job, onProgress)),
    now: () => convert(() => driver.now()),
    count: (table, limit) => convert(() => countRows(driver, table, limit)),
    ...(driver.watch && { watch: driver.watch }),
    withLock: (work, options) => withLeaseLock(connection, work, options),
    isLocked: () => isLeased(connection),
    close: () => driver.close(),
  };
  return connection;
}

async function readTables(driver: KeyValueDriver, names?: readonly string[]): Promise<SchemaModel> {
  const found = names ?? (await driver.entries(TABLES, { limit: MAX_TABLES, reverse: false }));
  const texts = found.length > 0 ? await driver.read(found.map(tableKey)) : [];
  const tables = texts.flatMap((text): Collection[] =>
    text === undefined ? [] : [deserializeCollection(JSON.parse(text))],
  );
  return new Map(tables.map((table) => [table.name, table]));
}

/** A table without a definition is as it is described: its rows are texts, and nothing else says what they are. */
async function readAs(driver: KeyValueDriver, collection: Collection): Promise<Collection | undefined> {
  const [existing] = await driver.read([tableKey(collection.name)]);
  return existing === undefined && (await firstRow(driver, collection.name)) !== undefined ? collection : undefined;
}

/** As creating each with `ifNotExists`: one that has a definition keeps it. */
async function adopt(driver: KeyValueDriver, collections: readonly Collection[], epoch: number): Promise<void> {
  for (const collection of collections) {
    const step = { kind: 'create', definition: serializeCollection(collection), ifNotExists: true } as const;
    await runStep(driver, step, epoch, undefined);
  }
}

type OnProgress = ((progress: Progress) => void) | undefined;

async function runStep(
  driver: KeyValueDriver,
  step: KeyValueStep,
  epoch: number,
  onProgress: OnProgress,
): Promise<void> {
  const fence = fenceOf(epoch);
  switch (step.kind) {
    case 'raw': {
      if ((await driver.commit({ expected: fence })) !== 'committed') throw lockLostError();
      await driver.query(step.statement);
      return;
    }
    case 'rows':
      return changeRows(driver, step.definition, step.change, fence, onProgress);
    case 'create': {
      const { definition, ifNotExists } = step;
      const { name } = definition;
      const [existing] = await driver.read([tableKey(name)]);
      if (existing !== undefined && ifNotExists) return;
      if (existing !== undefined) throw tableExistsError(name, 'Its definition is stored.', TABLE_EXISTS_REMEDIES);
      if (!ifNotExists) await assertNoRows(driver, name);
      if (!(await writeDefinition(driver, definition, [...fence, { key: tableKey(name) }]))) throw lockLostError();
      return;
    }
    case 'define': {
      const { table, definition, former } = step;
      const removed = definition ? former : table;
      if (!(await writeDefinition(driver, definition, fence, removed))) throw lockLostError();
    }
  }
}

/** Writes and removes definitions in one step. False if `expected` is not met. */
async function writeDefinition(
  driver: KeyValueDriver,
  definition: SerializedCollection | undefined,
  expected: readonly ExpectedText[],
  removed?: string,
): Promise<boolean> {
  const outcome = await driver.commit({
    expected,
    put: definition ? [{ key: tableKey(definition.name), text: JSON.stringify(definition) }] : [],
    addEntries: definition ? [{ set: TABLES, entry: definition.name }] : [],
    remove: removed === undefined ? [] : [tableKey(removed)],
    removeEntries: removed === undefined ? [] : [{ set: TABLES, entry: removed }],
  });
  return outcome === 'committed';
}

/** The rows of another program would be deleted with the table. */
async function assertNoRows(driver: KeyValueDriver, table: string): Promise<void> {
  const row = await firstRow(driver, table);
  if (row === undefined) return;
  throw tableExistsError(table, `It has the row ${row}, which svc did not write.`, [
    'Adopt its rows, which stay as they are: svc db migrate baseline',
    'Or use another name.',
  ]);
}

async function firstRow(driver: KeyValueDriver, table: string): Promise<string | undefined> {
  for await (const [row] of driver.scan(`${table}:`, 'rows')) if (row !== undefined) return row;
  return undefined;
}

const tableExistsError = (table: string, why: string, next: readonly string[]): SvcError =>
  new SvcError('collection_exists', `The table "${table}" already exists.`, { why, next });

/** Keys that are not rows of a table, by what comes before their first colon. */
async function findUnknownKeys(driver: KeyValueDriver, tables: SchemaModel): Promise<UnsupportedObject[]> {
  const found = new Map<string, UnsupportedObject>();
  for (const which of ['rows', 'others'] as const) {
    for await (const keys of driver.scan('', which)) {
      for (const prefix of keys.map((key) => key.split(':')[0] ?? key)) {
        if (prefix.startsWith('_svc_') || (which === 'rows' && tables.has(prefix))) continue;
        const what = `has keys that begin with ${JSON.stringify(prefix)}`;
        const collection = tables.has(prefix) && { collection: prefix, what: 'has keys that are not rows' };
        found.set(prefix, collection || { what: `${what}, which is not a table` });
      }
    }
  }
  return [...found.values()];
}

/** A row with its values as texts. */
interface Row {
  readonly key: string;
  readonly values: TextRow;
}

type ChangeOfRow = Pick<RowWrite, 'remove' | 'moveTo'> | { readonly set: TextRow };

interface RowJob {
  readonly table: string;
  readonly fields: readonly Field[];
  readonly expected: readonly ExpectedText[];
  readonly onProgress: OnProgress;
  /** Undefined: the row stays as it is. */
  changeOf(row: Row): ChangeOfRow | undefined;
}

/** Changes all rows of a table. A row that somebody else changes in between is read again. Returns the keys of those changed here. */
async function rewriteRows(driver: KeyValueDriver, job: RowJob): Promise<ReadonlySet<string>> {
  const { table, fields, expected, onProgress, changeOf } = job;
  const changed = new Set<string>();
  let done = 0;
  for await (const batch of driver.scan(`${table}:`, 'rows')) {
    for (let keys = batch; keys.length > 0; ) {
      const read = fields.length > 0 ? await driver.readRows(keys, fields) : [];
      const writes = keys.flatMap((key, at): RowWrite[] => {
        const values = read[at] ?? {};
        const change = changeOf({ key, values: decodeRow(fields, values) });
        if (!change) return [];
        const write = { key, read: values };
        return ['set' in change ? { ...write, set: encodeRow(fields, change.set) } : { ...write, ...change }];
      });
      const outcomes = writes.length > 0 ? await driver.writeRows(writes, expected, fields) : [];
      if (outcomes === 'conflict') throw lockLostError();
      const keysOf = (outcome: RowOutcome) => writes.flatMap(({ key }, at) => (outcomes[at] === outcome ? [key] : []));
      const [taken] = keysOf('taken');
      if (taken !== undefined) throw rowsExistError(table, `The new key of the row ${taken} exists.`);
      for (const key of keysOf('written')) changed.add(key);
      keys = keysOf('changed');
    }
    done += batch.length;
    onProgress?.({ collection: table, done });
  }
  return changed;
}

async function changeRows(
  driver: KeyValueDriver,
  definition: SerializedCollection,
  change: RowChange,
  expected: readonly ExpectedText[],
  onProgress: OnProgress,
): Promise<void> {
  const now = await driver.now();
  const { name: table } = definition;
  const changeOf = ({ key, values }: Row): ChangeOfRow | undefined => {
    switch (change.kind) {
      case 'expectNone':
        throw rowsExistError(table, `It has the row ${key}.`);
      case 'remove':
        return { remove: true };
      case 'moveTable':
        return { moveTo: `${change.to}${key.slice(table.length)}` };
      default: {
        const set = changedValues(change, definition, values, now);
        return Object.keys(set).length > 0 ? { set } : undefined;
      }
    }
  };
  await rewriteRows(driver, { table, fields: fieldsRead(definition, change), expected, onProgress, changeOf });
}

/** The fields a change reads, of which the last may be one that the definition does not have. */
function fieldsRead({ fields }: SerializedCollection, change: RowChange): readonly Field[] {
  const names = 'field' in change ? [change.field] : change.kind === 'move' ? [change.from, change.to] : [];
  const source = fields.find(({ name }) => name === names[0]);
  return source ? names.map((name) => ({ ...source, name })) : [];
}

async function runUpdate(driver: KeyValueDriver, job: UpdateJob, onProgress: OnProgress): Promise<UpdateResult> {
  const { fields: names, changes } = rowUpdate(job);
  const key = job.set.find(({ field }) => job.collection.fields.get(field)?.primaryKey);
  if (key) {
    throw new SvcError('update_invalid', `The key "${job.table}.${key.field}" cannot be changed.`, {
      why: 'The key identifies the row.',
      state: 'Nothing was changed.',
      next: ['Insert a new row and delete the old one.'],
    });
  }
  const fields = names.flatMap((name) => job.collection.fields.get(name) ?? []);
  const now = await driver.now();
  const matched = new Set<string>();
  const changeOf = ({ key, values }: Row) => {
    const set = changes(values, now);
    if (set) matched.add(key);
    return set && Object.keys(set).length > 0 ? { set } : undefined;
  };
  const modified = await rewriteRows(driver, { table: job.table, fields, expected: [], onProgress, changeOf });
  return { matched: matched.size, modified: modified.size };
}

async function countRows(driver: KeyValueDriver, table: string, limit: number): Promise<number> {
  const found = new Set<string>();
  for await (const keys of driver.scan(`${table}:`, 'rows')) {
    for (const key of keys) found.add(key);
    if (found.size >= limit) break;
  }
  return Math.min(found.size, limit);
}
