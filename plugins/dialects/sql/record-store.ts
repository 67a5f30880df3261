import { mergedPage } from '../../../core/merged-page.ts';
import {
  buildPage,
  type Guard,
  type Page,
  type PageQuery,
  pageIndex,
  pageStart,
  type RecordDefinition,
  type RecordStore,
  type RecordValue,
  type RecordValues,
  type Versioned,
  type Writable,
} from '../../../core/records.ts';
import { PORTABLE_NAME_LIMIT, shortName } from '../../../core/schema/names.ts';
import { ReadsByKey } from './reads-by-key.ts';
import { limitSql, oneRowSql, type RecordGrammar, recordLiteral } from './record-values.ts';
import { type ExecSql, rowsOf } from './session.ts';
import { LITERAL_PLACEHOLDER as LITERAL, StatementTemplate } from './statement.ts';

/** The column with the version of a record. */
export const VERSION_COLUMN = '_version';

/**
 * How an engine executes record statements. What its functions throw is passed to `isMissing` and `isDuplicate`: the error of
 * the driver, or a converted one that they recognize, as those of `engineErrors` do.
 */
export interface RecordBackend {
  readonly exec: ExecSql;
  /** The values of `columns` for each row, in the format that is cheapest for many rows. */
  readColumns(query: StatementTemplate, columns: readonly string[]): Promise<readonly (readonly unknown[])[]>;
  readonly grammar: RecordGrammar;
  /** Quoted, with its dot. */
  readonly schema: string;
  isMissing(error: unknown): boolean;
  isDuplicate(error: unknown): boolean;
  /**
   * A clause at the end of an INSERT, with which one of an existing key changes no row. Without it that is an error,
   * which an engine that sends several statements as one transaction must repeat one by one.
   */
  readonly onDuplicate?: string;
  toSvcError(error: unknown): unknown;
  /** A condition that is true while the epoch is current, and keeps it current until the transaction ends. */
  epochIsCurrent(epoch: number): string;
  /** Runs a statement that writes a record, notifies watchers if `notify` is given, and returns the affected rows. */
  write(statement: StatementTemplate, notify?: { readonly collection: string; readonly key: string }): Promise<number>;
}

/**
 * A record store over SQL, for any engine that counts the rows a statement changes. Its table is created by
 * `recordTableStatements`; while it is missing, reads find nothing.
 *
 * @example
 * records: (definition) => recordStore(backend, definition),
 */
export function recordStore<R extends object>(backend: RecordBackend, definition: RecordDefinition<R>): RecordStore<R> {
  const { grammar } = backend;
  const { quoteIdentifier } = grammar;
  const onDuplicate = backend.onDuplicate === undefined ? '' : ` ${backend.onDuplicate}`;
  const table = `${backend.schema}${quoteIdentifier(definition.collection)}`;
  const columns = Object.keys(definition.columns) as (keyof R & string)[];
  const key = quoteIdentifier(definition.key);
  const version = quoteIdentifier(VERSION_COLUMN);
  const valueSql = (column: keyof R & string, value: unknown) =>
    recordLiteral(grammar, value as RecordValue, definition.columns[column]);
  const write = (statement: StatementTemplate, id: string, record: Writable<R>) =>
    backend.write(
      statement,
      definition.notifyOn?.(record) ? { collection: definition.collection, key: id } : undefined,
    );
  const recordIn = (row: readonly unknown[], wanted: readonly (keyof R & string)[]): R => {
    const record: Record<string, RecordValue> = {};
    for (const [at, column] of wanted.entries()) record[column] = grammar.read(row[at], definition.columns[column]);
    return record as R;
  };

  const all = [...columns, VERSION_COLUMN];
  const isVersion = `${key} = ${LITERAL} AND ${version} = ${LITERAL}`;
  // Built once: most writes of approvals and executions differ in their literals only.
  const selectAll = `SELECT ${list(quoteIdentifier, all)} FROM ${table} WHERE ${key}`;
  const getTemplate = (literals: readonly string[]) =>
    grammar.anyOf
      ? new StatementTemplate(`${selectAll} = ANY(${LITERAL})`, [grammar.anyOf(literals)])
      : new StatementTemplate(`${selectAll} IN (${literals.map(() => LITERAL).join(', ')})`, literals);
  const removeTemplate = reusable(`DELETE FROM ${table} WHERE ${isVersion}`);
  const insertTemplate = reusable(
    `INSERT INTO ${table} (${list(quoteIdentifier, all)}) VALUES (${[...columns.map(() => LITERAL), '1'].join(', ')})${onDuplicate}`,
  );
  const set = [...columns.map((column) => `${quoteIdentifier(column)} = ${LITERAL}`), `${version} = ${version} + 1`];
  const replaceText = `UPDATE ${table} SET ${set.join(', ')} WHERE ${isVersion}`;
  const guarded = new Map<string | undefined, ReturnType<typeof reusable>>();
  const replaceTemplate = ({ before, epoch }: Guard<R>) => {
    const known = epoch === undefined ? guarded.get(before) : undefined;
    if (known) return known;
    const conditions = [
      replaceText,
      ...(before === undefined ? [] : [`${quoteIdentifier(before)} > ${grammar.clock}`]),
      ...(epoch === undefined ? [] : [backend.epochIsCurrent(epoch)]),
    ];
    const template = reusable(conditions.join(' AND '));
    if (epoch === undefined) guarded.set(before, template);
    return template;
  };

  const keyAt = all.indexOf(definition.key);
  const reads = new ReadsByKey(async (ids) => {
    const query = getTemplate(ids.map((id) => valueSql(definition.key, id)));
    const found = await emptyIfMissing(backend, () => backend.readColumns(query, all));
    return new Map(found.map((row) => [String(row[keyAt]), row]));
  });
  const get = async (id: string): Promise<Versioned<R> | undefined> => {
    const row = await reads.get(id);
    return row && { record: recordIn(row, columns), version: Number(row[columns.length]) };
  };
  const failureReason = async (id: string, expectedVersion: number): Promise<'missing' | 'stale' | undefined> => {
    const current = await get(id);
    if (!current) return 'missing';
    return current.version === expectedVersion ? undefined : 'stale';
  };

  return {
    async insert(record) {
      const statement = insertTemplate(columns.map((column) => valueSql(column, record[column])));
      try {
        const inserted = await write(statement, String(record[definition.key]), record);
        return inserted === 0 && backend.onDuplicate !== undefined ? 'exists' : 'inserted';
      } catch (error) {
        if (backend.isDuplicate(error)) return 'exists';
        throw backend.toSvcError(error);
      }
    },
    get,
    async replace(id, expectedVersion, record: Writable<R>, guard: Guard<R> = {}) {
      const literals = [
        ...columns.map((column) => valueSql(column, record[column])),
        valueSql(definition.key, id),
        String(expectedVersion),
      ];
      const statement = replaceTemplate(guard)(literals);
      const changed = await runWrite(backend, () => write(statement, id, record));
      if (changed > 0) return 'replaced';
      const reason = await failureReason(id, expectedVersion);
      if (reason) return reason;
      if (guard.epoch === undefined) return guard.before === undefined ? 'stale' : 'late';
      const current = await rowsOf(
        backend.exec,
        `SELECT 1 AS svc_one FROM ${oneRowSql(grammar)} WHERE ${backend.epochIsCurrent(guard.epoch)}`,
      );
      return current.length > 0 && guard.before !== undefined ? 'late' : 'stale';
    },
    async remove(id, expectedVersion) {
      const statement = removeTemplate([valueSql(definition.key, id), String(expectedVersion)]);
      const changed = await runWrite(backend, () => backend.write(statement));
      return changed > 0 ? 'removed' : ((await failureReason(id, expectedVersion)) ?? 'stale');
    },
    async page(name, query) {
      if (query.anyOf) return mergedPage(definition, name, query, (one) => this.page(name, one));
      const index = pageIndex(definition, name, query);
      const wanted = query.columns ?? columns;
      const down = query.direction === 'desc';
      const order = down ? ' DESC' : '';
      const inOrder = (column: keyof R & string, sql: string) =>
        definition.columns[column].type === 'string' ? (grammar.textOrder?.(sql) ?? sql) : sql;
      const orderedValue = (column: keyof R & string, value: unknown) => inOrder(column, valueSql(column, value));
      const sort = inOrder(index.sort, quoteIdentifier(index.sort));
      const orderedKey = inOrder(definition.key, key);
      const conditions = index.equals.map(
        (column) => `${quoteIdentifier(column)} = ${valueSql(column, query.equals?.[column])}`,
      );
      if (query.from !== undefined) conditions.push(`${sort} >= ${orderedValue(index.sort, query.from)}`);
      if (query.to !== undefined) conditions.push(`${sort} <= ${orderedValue(index.sort, query.to)}`);
      const start = pageStart(definition, index, query);
      if (start) {
        const [bound, beyond] = [orderedValue(index.sort, start.sort), down ? '<' : '>'];
        const after = orderedValue(definition.key, start.key);
        // The first condition lets engines that do not index row comparisons use the index.
        conditions.push(
          `${sort} ${beyond}= ${bound}`,
          grammar.comparesRows === false
            ? `(${sort} ${beyond} ${bound} OR ${orderedKey} ${beyond} ${after})`
            : `(${sort}, ${orderedKey}) ${beyond} (${bound}, ${after})`,
        );
      }
      const names: readonly (keyof R & string)[] = [...new Set([...wanted, index.sort, definition.key])];
      const where = conditions.length > 0 ? ` WHERE ${conditions.join(' AND ')}` : '';
      const text = `SELECT ${list(quoteIdentifier, [...names, VERSION_COLUMN])} FROM ${table}${where} ORDER BY ${sort}${order}, ${orderedKey}${order} ${limitSql(grammar, query.limit + 1)}`;
      const rows = await emptyIfMissing(backend, () =>
        backend.readColumns(new StatementTemplate(text), [...names, VERSION_COLUMN]),
      );
      const valueIn = (row: readonly unknown[], column: keyof R & string) =>
        grammar.read(row[names.indexOf(column)], definition.columns[column]);
      return buildPage(
        rows,
        query.limit,
        (row) => ({ record: recordIn(row, wanted), version: Number(row[names.length]) }),
        (row) => ({ sort: valueIn(row, index.sort), key: String(valueIn(row, definition.key)) }),
      );
    },
  } satisfies RecordStore<R> & { page(index: string, query: PageQuery<R>): Promise<Page<R>> };
}

/** A template for any literals, in the order of their placeholders. */
const reusable = (text: string) => (literals: readonly string[]) => new StatementTemplate(text, literals);

const list = (quote: (name: string) => string, names: readonly string[]): string => names.map(quote).join(', ');

/** The number of changed rows; 0 if the table does not exist. */
async function runWrite(backend: RecordBackend, write: () => Promise<number>): Promise<number> {
  try {
    return await write();
  } catch (error) {
    if (backend.isMissing(error)) return 0;
    throw backend.toSvcError(error);
  }
}

async function emptyIfMissing<T>(backend: RecordBackend, read: () => Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await read();
  } catch (error) {
    if (backend.isMissing(error)) return [];
    throw backend.toSvcError(error);
  }
}

/**
 * The statements that create the table of a definition or add its new columns. Safe to repeat. `existing` are the columns
 * of the table, for engines without ADD COLUMN IF NOT EXISTS. `alterDropsIndexes`: the engine rejects ALTER TABLE while
 * the table has indexes.
 */
export function recordTableStatements(
  grammar: RecordGrammar,
  schema: string,
  definition: RecordDefinition<RecordValues>,
  existing?: readonly string[],
  alterDropsIndexes = false,
): string[] {
  const { quoteIdentifier, names = PORTABLE_NAME_LIMIT } = grammar;
  const table = `${schema}${quoteIdentifier(definition.collection)}`;
  const columns = Object.entries(definition.columns).map(([name, column]) => ({
    name,
    text: `${quoteIdentifier(name)} ${grammar.columnType({ type: column.type }, definition.collection)}`,
    required: !column.nullable,
  }));
  const lines = columns.map(({ name, text, required }) =>
    name === definition.key ? `${text} NOT NULL PRIMARY KEY` : required ? `${text} NOT NULL` : text,
  );
  const { addColumn = 'ADD COLUMN' } = grammar;
  const ifNotExists = grammar.ifNotExists === false ? '' : 'IF NOT EXISTS ';
  const isAdded = (name: string) => existing === undefined || (existing.length > 0 && !existing.includes(name));
  const added = columns.filter(({ name }) => isAdded(name));
  const indexes = definition.indexes.map((index) => ({
    ...index,
    quoted: quoteIdentifier(shortName(`${definition.collection}_${index.name}`, names)),
  }));
  return [
    `CREATE TABLE ${ifNotExists}${table} (${[...lines, `${quoteIdentifier(VERSION_COLUMN)} bigint NOT NULL`].join(', ')})`,
    ...(alterDropsIndexes && added.length > 0 ? indexes.map(({ quoted }) => `DROP INDEX IF EXISTS ${quoted}`) : []),
    // New columns are nullable, because older rows have no value for them.
    ...added.map(
      ({ text }) => `ALTER TABLE ${table} ${addColumn} ${existing === undefined ? 'IF NOT EXISTS ' : ''}${text}`,
    ),
    ...indexes.map(
      ({ quoted, equals, sort }) =>
        `CREATE INDEX ${ifNotExists}${quoted} ON ${table} (${list(quoteIdentifier, [...new Set([...equals, sort, definition.key])])})`,
    ),
  ];
}
