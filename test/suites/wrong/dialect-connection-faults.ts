import { connect as connectSocket } from 'node:net';
import type { Connection, Dialect } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import type { RecordDefinition } from '../../../core/records.ts';
import type { SchemaModel } from '../../../core/schema/model.ts';
import { right, withConnection } from './right-dialect.ts';

/** The date that a clock of this process shows, as if it were in UTC. */
const toLocal = (date: Date): Date => new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
const fromLocal = (date: Date): Date => new Date(date.getTime() + date.getTimezoneOffset() * 60_000);
/** A text of a moment or of a wall clock, moved by the time zone of this process; any other value as it is. */
const localText = (value: Json): Json =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\d[T ]/.test(value)
    ? toLocal(new Date(value.endsWith('Z') ? value : `${value}Z`))
        .toISOString()
        .slice(0, value.length)
    : value;

/** Compares the keys of records by a form that several of them share. */
const withKeys = (form: (key: string) => string): Dialect =>
  withConnection((connection) => ({
    records: <R extends object>(definition: RecordDefinition<R>) => {
      const store = connection.records(definition);
      const withForm = (record: R): R => ({ ...record, [definition.key]: form(String(record[definition.key])) });
      const insert: typeof store.insert = (record) => store.insert(withForm(record as R));
      const get: typeof store.get = (key) => store.get(form(key));
      const replace: typeof store.replace = (key, version, record, guard) =>
        store.replace(form(key), version, withForm(record as R), guard);
      const remove: typeof store.remove = (key, version) => store.remove(form(key), version);
      return { ...store, insert, get, replace, remove };
    },
  }));

/** The catalog, until this process changes it. */
let catalogOfThisProcess: SchemaModel | undefined;

const sharedConnections = new Map<string, { users: number; readonly opened: Promise<Connection> }>();

/** Longer than what a failed attempt has started may last. */
const LONG_MS = 10_000;

/** Dialects whose connections break one promise of the contract each, made from a right one. */
export const connectionFaults = {
  'spells expressions in a table that others see': withConnection((connection) => ({
    async normalize(model) {
      await connection.query('CREATE TABLE "_svc_scratch_0" (n integer)');
      await connection.introspect();
      await connection.query('DROP TABLE "_svc_scratch_0"');
      return connection.normalize(model);
    },
  })),
  'stays in a transaction once another process was writing': {
    ...right,
    async connect(url, options) {
      const connection = await right.connect(url, options);
      const writer = await right.connect(url, options);
      return {
        ...connection,
        records: <R extends object>(definition: RecordDefinition<R>) => {
          const store = writer.records(definition);
          const insert: typeof store.insert = async (record) => {
            // One writer at a time, as in a file of SQLite.
            const [lock] = await writer.query('SELECT pg_try_advisory_lock(1) AS free');
            if (lock?.free !== true) {
              await writer.query('BEGIN');
              throw new Error('database is locked');
            }
            return store.insert(record).finally(() => writer.query('SELECT pg_advisory_unlock(1)'));
          };
          return { ...store, insert };
        },
        async close() {
          await writer.close();
          await connection.close();
        },
      };
    },
  },
  'stores the dates of records in the time zone of the process': withConnection((connection) => ({
    records: <R extends object>(definition: RecordDefinition<R>) => {
      const store = connection.records(definition);
      const converted = <T extends object>(record: T, convert: (date: Date) => Date): T =>
        Object.fromEntries(
          Object.entries(record).map(([name, value]) => [name, value instanceof Date ? convert(value) : value]),
        ) as T;
      const insert: typeof store.insert = (record) => store.insert(converted(record, toLocal));
      const get: typeof store.get = async (key) => {
        const found = await store.get(key);
        return found && { ...found, record: converted(found.record, fromLocal) };
      };
      return { ...store, insert, get };
    },
  })),
  'compares deadlines in the time zone of the process': withConnection((connection) => ({
    records: <R extends object>(definition: RecordDefinition<R>) => {
      const store = connection.records(definition);
      const replace: typeof store.replace = async (key, version, record, { before, ...guard } = {}) => {
        const deadline = before && (await store.get(key))?.record[before];
        if (deadline instanceof Date && fromLocal(deadline) <= (await connection.now())) return 'late';
        return store.replace(key, version, record, guard);
      };
      return { ...store, replace };
    },
  })),
  'returns the time of the engine in the time zone of the process': withConnection((connection) => ({
    now: async () => toLocal(await connection.now()),
  })),
  'updates rows in the time zone of the process': withConnection((connection) => ({
    update: ({ set, ...job }) =>
      connection.update({
        ...job,
        set: set.map((one) => ('value' in one ? { ...one, value: localText(one.value) } : one)),
      }),
  })),
  'finds rows in the time zone of the process': withConnection((connection) => ({
    update: ({ where, ...job }) =>
      connection.update({
        ...job,
        where: where.map((one) => (one.operator === 'eq' ? { ...one, value: localText(one.value) } : one)),
      }),
  })),
  'defines defaults in the time zone of the process': {
    ...right,
    compile(operation, before) {
      if (operation.type !== 'addField') return right.compile(operation, before);
      const { default: value, ...field } = operation.field;
      const moved = value === undefined ? {} : { default: localText(value as Json) };
      return right.compile({ ...operation, field: { ...field, ...moved } }, before);
    },
  },

  'compares keys without regard to case': withKeys((key) => key.toLowerCase()),
  'compares keys without spaces at the end': withKeys((key) => key.trimEnd()),
  'compares keys in one Unicode normalization': withKeys((key) => key.normalize('NFC')),
  'compares values of an index without regard to case': withConnection((connection) => ({
    records: <R extends object>(definition: RecordDefinition<R>) => {
      const store = connection.records(definition);
      const page: typeof store.page = async (name, query) => {
        if (!query.equals || query.anyOf) return store.page(name, query);
        const [[column, value] = []] = Object.entries(query.equals);
        const forms = [String(value).toLowerCase(), String(value).toUpperCase()];
        const anyOf = forms.map((form) => ({ [String(column)]: form }) as Partial<R>);
        const { equals: _, ...rest } = query;
        return store.page(name, { ...rest, anyOf });
      };
      return { ...store, page };
    },
  })),
  'reads the catalog once': withConnection((connection) => {
    let catalog: Promise<SchemaModel> | undefined;
    return {
      async introspect(names) {
        catalog ??= connection.introspect();
        const all = await catalog;
        return new Map([...all].filter(([name]) => names?.includes(name) ?? true));
      },
    };
  }),
  'reads the catalog again after the changes of its own process': withConnection((connection) => ({
    async introspect(names) {
      if (names) return connection.introspect(names);
      catalogOfThisProcess ??= await connection.introspect();
      return catalogOfThisProcess;
    },
    async run(...args) {
      catalogOfThisProcess = undefined;
      return connection.run(...args);
    },
  })),
  'closes once': withConnection((connection) => {
    let isClosed = false;
    return {
      async close() {
        if (isClosed) throw new Error('Called end on a pool more than once');
        isClosed = true;
        await connection.close();
      },
    };
  }),
  'waits for a connection that was closed': withConnection((connection) => {
    let isClosed = false;
    return {
      now: () => (isClosed ? new Promise(() => undefined) : connection.now()),
      async close() {
        isClosed = true;
        await connection.close();
      },
    };
  }),
  'acknowledges writes once it is closed': withConnection((connection) => {
    let isClosed = false;
    return {
      records: <R extends object>(definition: RecordDefinition<R>) => {
        const store = connection.records(definition);
        const insert: typeof store.insert = async (record) => (isClosed ? 'inserted' : store.insert(record));
        return { ...store, insert };
      },
      async close() {
        isClosed = true;
        await connection.close();
      },
    };
  }),
  'closes what others use when it is closed twice': {
    ...right,
    async connect(url, options) {
      const shared = sharedConnections.get(url) ?? { users: 0, opened: right.connect(url, options) };
      sharedConnections.set(url, shared);
      shared.users += 1;
      const connection = await shared.opened;
      return {
        ...connection,
        async close() {
          shared.users -= 1;
          if (shared.users === 0) await connection.close();
        },
      };
    },
  },
  'throws what its driver throws for a URL': { ...right, identify: (url) => right.identify(new URL(url).href) },
  'throws what its driver throws when it cannot connect': {
    ...right,
    connect: (url, options) =>
      right.connect(url, options).catch((error: Error) => {
        throw url.includes(':') ? (error.cause ?? error) : error;
      }),
  },
  'leaves a timer after a failed attempt to connect': {
    ...right,
    connect: (url, options) =>
      right.connect(url, options).catch((error) => {
        // So that the test program itself ends.
        setTimeout(() => undefined, LONG_MS);
        throw error;
      }),
  },
  'leaves the connection of a failed attempt open': {
    ...right,
    connect: (url, options) =>
      right.connect(url, options).catch((error) => {
        if (!URL.canParse(url)) throw error;
        const { hostname, port } = new URL(url);
        const socket = connectSocket({ host: hostname, port: Number(port) }).on('error', () => undefined);
        setTimeout(() => socket.destroy(), LONG_MS).unref();
        throw error;
      }),
  },
  'waits for a server that does not answer': {
    ...right,
    connect: (url, { connectTimeoutMs: _, ...options }) =>
      right.connect(url, { ...options, connectTimeoutMs: 3_600_000 }),
  },
} satisfies Record<string, Dialect>;
