import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Connection, ConnectOptions, Dialect, Segment, Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { definePlugin } from '../../../core/plugin.ts';
import type { RecordDefinition } from '../../../core/records.ts';
import { apply } from '../../../core/schema/apply.ts';
import type { SchemaModel } from '../../../core/schema/model.ts';
import type { NamedFieldDefinition, Operation } from '../../../core/schema/operation.ts';
import { SerialQueue } from '../../../plugins/shared/serial-queue.ts';
import { connectionFaults } from './dialect-connection-faults.ts';
import { right, withConnection } from './right-dialect.ts';

/**
 * Dialects that break one promise of the contract each, made from a right one. The default export is the plugin of one
 * of them: `dialects.ts?wrong=<name>`.
 */

const withStatements = (change: (statement: Statement) => Partial<Statement>): Dialect => ({
  ...right,
  compile: (operation, before) =>
    right.compile(operation, before).map((statement) => ({ ...statement, ...change(statement) })),
});

const plainSql = { transactional: true, destructive: false } as const;

const sql = (statement: string): Operation => ({ type: 'raw', dialect: right.name, statement });

type Change = (operation: Operation, before: SchemaModel) => readonly Operation[];

/** Runs other operations than those that it is given, and claims the result of those that it is given. */
function claiming(change: Change): Dialect {
  let claimed: SchemaModel = new Map();
  return {
    ...right,
    compile(operation, before) {
      claimed = apply(before, operation);
      let model = before;
      return change(operation, before).flatMap((one) => {
        // A raw statement needs the lock.
        if (one.type === 'raw' && one !== operation)
          return [{ ...plainSql, text: one.statement, run: { kind: 'sql', parts: [one.statement] } }];
        const statements = right.compile(one, model);
        model = apply(model, one);
        return statements;
      });
    },
    async connect(url, options) {
      const connection = await right.connect(url, options);
      return { ...connection, introspect: async () => connection.normalize(claimed) };
    },
  };
}

/** Changes the definition of every field that is created or added. */
const withFields = (change: (field: NamedFieldDefinition) => NamedFieldDefinition): Change => {
  return (operation) => {
    if (operation.type === 'createCollection') return [{ ...operation, fields: operation.fields.map(change) }];
    return [operation.type === 'addField' ? { ...operation, field: change(operation.field) } : operation];
  };
};

/** Leaves out the constraints of a type. */
const withoutConstraints =
  (type: 'check' | 'foreignKey'): Change =>
  (operation, before) => {
    if (operation.type === 'addConstraint' && operation.constraint.type === type) return [];
    if (operation.type !== 'dropConstraint') return [operation];
    return before.get(operation.collection)?.constraints.get(operation.constraint)?.type === type ? [] : [operation];
  };

const comparingWithOwnClock = (connection: Connection): Partial<Connection> => ({
  records: <R extends object>(definition: RecordDefinition<R>) => {
    const store = connection.records(definition);
    const replace: typeof store.replace = async (key, version, record, { before, ...guard } = {}) => {
      const deadline = before && (await store.get(key))?.record[before];
      if (deadline instanceof Date && deadline.getTime() <= Date.now()) return 'late';
      return store.replace(key, version, record, guard);
    };
    return { ...store, replace };
  },
});

/** Runs a statement after an operation of a type, which has a table called `table` then. */
const followedBy = (
  type: 'addField' | 'renameField' | 'renameCollection',
  statement: (operation: Operation, table: string, before: SchemaModel) => string | undefined,
): Change => {
  return (operation, before) => {
    if (operation.type !== type) return [operation];
    const table = operation.type === 'renameCollection' ? operation.to : operation.collection;
    const text = statement(operation, `"${table}"`, before);
    return text === undefined ? [operation] : [operation, sql(text)];
  };
};

const hasText = (segments: readonly Segment[], pattern: RegExp): boolean =>
  segments.some(({ statements }) => statements.some(({ text }) => pattern.test(text)));

const ofThisProcess = new SerialQueue();
let lastEpoch = 0;
const memory = new Map<string, Promise<Connection>>();

export const wrongDialects = {
  ...connectionFaults,
  'loses a default on rename': claiming((operation, before) => {
    if (operation.type !== 'renameField') return [operation];
    const { collection, from, to } = operation;
    if (before.get(collection)?.fields.get(from)?.default === undefined) return [operation];
    return [operation, { type: 'modifyField', collection, field: to, changes: { default: null } }];
  }),
  'applies no defaults': claiming(withFields(({ default: _, ...field }) => field)),
  'requires nothing': claiming(withFields(({ required: _, ...field }) => field)),
  'checks no enum': claiming(
    withFields(({ enumValues, ...field }) => (enumValues ? { ...field, type: 'text' } : field)),
  ),
  'checks nothing': claiming(withoutConstraints('check')),
  'has no foreign keys': claiming(withoutConstraints('foreignKey')),
  'has no unique indexes': claiming((operation) => [
    operation.type === 'createIndex' ? { ...operation, unique: false } : operation,
  ]),
  'truncates at another length': claiming((operation) => {
    if (operation.type !== 'modifyField' || operation.changes.length === undefined) return [operation];
    return [{ ...operation, changes: { ...operation.changes, length: 200 } }];
  }),
  'destroys nothing, it says': withStatements(() => ({ destructive: false })),
  'destroys everything, it says': withStatements(() => ({ destructive: true })),
  'recreates a referenced table and its rows': withConnection((connection) => ({
    async run(segments, ...rest) {
      if (hasText(segments, /^ALTER TABLE "owners" ALTER/)) {
        await connection.query('CREATE TABLE recreated AS SELECT * FROM owners');
        await connection.query('DELETE FROM owners');
        await connection.query('INSERT INTO owners SELECT * FROM recreated');
        await connection.query('DROP TABLE recreated');
      }
      return connection.run(segments, ...rest);
    },
  })),
  'adds a foreign key without checking the rows': withConnection((connection) => ({
    async run(segments, ...rest) {
      if (!hasText(segments, /FOREIGN KEY/)) return connection.run(segments, ...rest);
      for (const { statements } of segments)
        for (const { text } of statements) await connection.query(`${text} NOT VALID`);
      return { committed: segments.length, written: segments.map(() => []) };
    },
  })),
  'changes a type without converting the values': claiming((operation) =>
    operation.type === 'modifyField' && operation.changes.type === 'integer' ? [] : [operation],
  ),
  'generates one UUID': claiming(
    withFields(({ autoGenerate, ...field }) =>
      autoGenerate ? { ...field, default: '00000000-0000-4000-8000-000000000000' } : field,
    ),
  ),
  'has a literal in place of now': claiming(
    withFields((field) =>
      field.type === 'date' && field.default === 'now' ? { ...field, type: 'string', default: 'never' } : field,
    ),
  ),
  'rounds decimals': claiming(
    withFields(({ precision, scale, ...field }) =>
      precision === undefined ? field : { ...field, type: field.type === 'decimal' ? 'double' : field.type },
    ),
  ),
  'fills no default into rows that exist': claiming((operation) => {
    if (operation.type !== 'addField') return [operation];
    const { collection, field } = operation;
    const { default: value, ...plain } = field;
    if (value === undefined) return [operation];
    return [
      { ...operation, field: plain },
      { type: 'modifyField', collection, field: field.name, changes: { default: value } },
    ];
  }),
  'fills a default into one page of rows': claiming(
    followedBy('addField', (operation, table) =>
      operation.type === 'addField' && operation.field.default !== undefined
        ? `UPDATE ${table} SET "${operation.field.name}" = NULL WHERE ctid NOT IN (SELECT ctid FROM ${table} LIMIT 1000)`
        : undefined,
    ),
  ),
  'drops the first byte of a renamed field': claiming(
    followedBy('renameField', (operation, table, before) => {
      if (operation.type !== 'renameField') return undefined;
      const { collection, from, to } = operation;
      if (before.get(collection)?.fields.get(from)?.type !== 'binary') return undefined;
      return `UPDATE ${table} SET "${to}" = substring("${to}" FROM 2)`;
    }),
  ),
  'loses the last page of a renamed table': claiming(
    followedBy('renameCollection', (_operation, table) => `DELETE FROM ${table} WHERE "id"::text = '1001'`),
  ),
  'reads an empty text of a renamed field as null': claiming(
    followedBy('renameField', (operation, table, before) => {
      if (operation.type !== 'renameField') return undefined;
      const { collection, from, to } = operation;
      if (before.get(collection)?.fields.get(from)?.type !== 'text') return undefined;
      return `UPDATE ${table} SET "${to}" = NULL WHERE "${to}" = ''`;
    }),
  ),
  'keeps the values of a dropped field': claiming((operation) => {
    if (operation.type === 'dropField')
      return [sql(`ALTER TABLE "${operation.collection}" RENAME "${operation.field}" TO "dropped ${operation.field}"`)];
    if (operation.type !== 'addField' || operation.field.name !== 'spare') return [operation];
    return [sql(`ALTER TABLE "${operation.collection}" RENAME "dropped spare" TO "spare"`)];
  }),
  'stores bigints as floats': claiming(
    withFields((field) => (field.type === 'bigint' ? { ...field, type: 'double' } : field)),
  ),
  'stores times in seconds': {
    ...right,
    compile: (operation, before) => {
      const seconds = <T>(value: T): T =>
        JSON.parse(JSON.stringify(value).replaceAll('timestamp(3)', 'timestamp(0)')) as T;
      return right.compile(operation, before).map((statement) => ({ ...statement, run: seconds(statement.run) }));
    },
  },
  'counts one page of rows': withConnection((connection) => ({
    count: async (table, limit) => Math.min(1_000, await connection.count(table, limit)),
  })),
  'reads, and then updates': withConnection((connection) => ({
    async update(job) {
      const rows = await connection.query(`SELECT * FROM "${job.table}"`);
      const isExpected = job.where.every(({ field, value }) => rows[0]?.[field] === value);
      return isExpected ? connection.update({ ...job, where: [] }) : { matched: 0, modified: 0 };
    },
  })),
  'checks inserted rows only': withConnection((connection) => ({
    async update(job) {
      const table = `"${job.table.replaceAll('"', '""')}"`;
      const checks = await connection.query(
        `SELECT conname AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE contype = 'c' AND conrelid = '${table}'::regclass`,
      );
      for (const { name } of checks) await connection.query(`ALTER TABLE ${table} DROP CONSTRAINT "${name}"`);
      const updated = await connection.update(job);
      for (const { name, definition } of checks)
        await connection.query(`ALTER TABLE ${table} ADD CONSTRAINT "${name}" ${definition} NOT VALID`);
      return updated;
    },
  })),
  'leaves a call pending when it closes': withConnection(() => ({ now: () => new Promise(() => undefined) })),
  'lists no unsupported object': withConnection(() => ({ unsupportedObjects: async () => [] })),

  'keeps everything in memory': {
    ...right,
    async connect(url: string, options: ConnectOptions) {
      const opened = memory.get(url) ?? right.connect('pglite://memory', options);
      memory.set(url, opened);
      return { ...(await opened), close: async () => undefined };
    },
  },
  'acknowledges a record before it is stored': withConnection((connection) => ({
    records: <R extends object>(definition: RecordDefinition<R>) => {
      const store = connection.records(definition);
      const insert: typeof store.insert = async (record) => {
        void wait(1_000).then(() => store.insert(record));
        return 'inserted';
      };
      return { ...store, insert };
    },
  })),
  'compares deadlines with its own clock': withConnection(comparingWithOwnClock),
  'uses the clock of the process': withConnection((connection) => ({
    ...comparingWithOwnClock(connection),
    now: async () => new Date(),
  })),
  'returns the clock of the process': withConnection(() => ({ now: async () => new Date() })),

  'pads strings': claiming(
    withFields((field) =>
      field.type === 'string' && field.name === 'string' ? { ...field, native: `char(${field.length})` } : field,
    ),
  ),

  'rejects an option of svc': {
    ...right,
    async connect(url: string, options: ConnectOptions) {
      if (options.connectTimeoutMs === undefined) return right.connect(url, options);
      throw new SvcError('config_invalid', 'There is no option "connectTimeoutMs".');
    },
  },
  'accepts any option': { ...right, connect: (url: string) => right.connect(url, {}) },

  'has a lock in the process': withConnection((connection) => ({
    async withLock(work, options) {
      const epoch = await connection.withLock(async (one) => one, options);
      return ofThisProcess.run(() => work(epoch));
    },
  })),
  'counts epochs in the process': withConnection((connection) => ({
    withLock: (work, options) =>
      connection.withLock(() => {
        lastEpoch += 1;
        return work(lastEpoch);
      }, options),
  })),
  'writes the history in another transaction': withConnection((connection) => ({
    async run(segments, ...rest) {
      for (const segment of segments) {
        const first = await connection.run([{ ...segment, writes: [] }], ...rest);
        if (first.failure) return first;
        await wait(50);
        await connection.run([{ ...segment, statements: [] }], ...rest);
      }
      return { committed: segments.length, written: segments.map(({ writes }) => writes.map(() => ({}))) };
    },
  })),

  'stores the records of a segment one by one': withConnection((connection) => ({
    async run(segments, ...rest) {
      for (const segment of segments) {
        for (const write of segment.writes) {
          const { failure } = await connection.run([{ ...segment, writes: [write] }], ...rest);
          if (failure) return { committed: 0, written: [], failure };
        }
      }
      return { committed: segments.length, written: segments.map(({ writes }) => writes.map(() => ({}))) };
    },
  })),

  'has one identity for all': { ...right, identify: () => 'postgresql' },
  'has an identity for each call': { ...right, identify: () => randomUUID() },
  'has an identity for each process': { ...right, identify: (url: string) => `${process.pid} ${right.identify(url)}` },
  'has the password in its identity': { ...right, identify: (url: string) => url },
} satisfies Record<string, Dialect>;

export type WrongDialect = keyof typeof wrongDialects;

export function moduleOf(name: WrongDialect): URL {
  const url = new URL('./dialects.ts', import.meta.url);
  url.searchParams.set('wrong', name);
  return url;
}

/** From the first argument of `dialect-process`, since a bundle does not know the URL that it was imported by. */
const chosen = new URL(process.argv[2] ?? '', import.meta.url).searchParams.get('wrong') as WrongDialect;

export default definePlugin({
  name: 'wrong',
  apply: (kernel) => kernel.dialects.register(right.name, wrongDialects[chosen]),
});
