import { randomUUID } from 'node:crypto';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import { keyValueDialect, UNSUPPORTED_BY_KEY_VALUE } from '../../../plugins/dialects/shared/key-value/dialect.ts';
import type { KeyValueDriver, RowValues } from '../../../plugins/dialects/shared/key-value/driver.ts';
import { emptyMemory, type Memory, memoryDriver } from '../../kit/memory-driver.ts';
import type { DialectUnderTest } from '../dialect-under-test.ts';
import type { TestDatabase } from '../test-database.ts';

/** Drivers of key-value engines that break one promise of the contract each, made from a right one. */

type Change = (driver: KeyValueDriver) => Partial<KeyValueDriver>;
const PAGE = 1_000;

/** Changes the values that are written to rows. */
const writing =
  (change: (bytes: Uint8Array, field: Field) => Uint8Array): Change =>
  (driver) => ({
    writeRows(writes, expected, fields) {
      const types = new Map(fields.map((field) => [field.name, field]));
      const changed = (set: RowValues): RowValues =>
        Object.fromEntries(
          Object.entries(set).map(([name, bytes]) => {
            const field = types.get(name);
            return [name, bytes && field ? change(bytes, field) : bytes];
          }),
        );
      const all = writes.map((write) => (write.set ? { ...write, set: changed(write.set) } : write));
      return driver.writeRows(all, expected, fields);
    },
  });

/** Changes the texts that are written to rows, of fields of some types. */
const writingTexts = (types: readonly Field['type'][], change: (text: string) => string): Change =>
  writing((bytes, { type }) => (types.includes(type) ? Buffer.from(change(Buffer.from(bytes).toString())) : bytes));

const isBytes = ({ type }: Field) => type === 'binary' || type === 'blob';

export const wrongDrivers = {
  'drops the first byte of bytes': writing((bytes, field) => (isBytes(field) ? bytes.subarray(1) : bytes)),
  'writes bytes as UTF-8': writing((bytes, field) =>
    isBytes(field) ? Buffer.from(Buffer.from(bytes).toString()) : bytes,
  ),
  'stores integers as floats': writingTexts(['integer', 'smallint', 'bigint'], (text) => String(Number(text))),
  'stores decimals as floats': writingTexts(['decimal'], (text) => String(Number(text))),
  'cuts times to seconds': writingTexts(['time', 'datetime', 'timestamp'], (text) => text.split('.')[0] ?? ''),
  'normalizes texts': writingTexts(['string'], (text) => text.normalize('NFC')),
  'trims strings': writingTexts(['string'], (text) => text.trimEnd()),
  'trims texts': writingTexts(['text'], (text) => text.trim()),
  'reads an empty value as a missing one': ({ readRows }) => ({
    readRows: async (keys, fields) =>
      (await readRows(keys, fields)).map((row) =>
        Object.fromEntries(Object.entries(row).map(([name, bytes]) => [name, bytes?.length ? bytes : null])),
      ),
  }),
  'reads a missing value as an empty one': ({ readRows, writeRows }) => ({
    readRows: async (keys, fields) =>
      (await readRows(keys, fields)).map((row) =>
        Object.fromEntries(Object.entries(row).map(([name, bytes]) => [name, bytes ?? Buffer.from('')])),
      ),
    writeRows: (writes, expected, fields) =>
      writeRows(
        writes.map((write) => ({ ...write, read: {} })),
        expected,
        fields,
      ),
  }),
  'keeps the values of a dropped field': ({ writeRows }) => ({
    writeRows: (writes, expected, fields) =>
      writeRows(
        writes.map((write) => {
          const values = Object.values(write.set ?? {});
          return values.length === 1 && values[0] === null ? { ...write, set: {} } : write;
        }),
        expected,
        fields,
      ),
  }),
  'overwrites what others changed': ({ writeRows }) => ({
    writeRows: (writes, expected, fields) =>
      writeRows(
        writes.map((write) => ({ ...write, read: {} })),
        expected,
        fields,
      ),
  }),
  'writes rows without the lock': ({ writeRows }) => ({
    writeRows: (writes, _expected, fields) => writeRows(writes, [], fields),
  }),
  'writes new keys in lower case': ({ writeRows }) => ({
    writeRows: (writes, expected, fields) =>
      writeRows(
        writes.map((write) => (write.moveTo ? { ...write, moveTo: write.moveTo.toLowerCase() } : write)),
        expected,
        fields,
      ),
  }),
  'finds one page of rows': ({ scan }) => ({
    async *scan(prefix, which) {
      let found = 0;
      for await (const keys of scan(prefix, which)) {
        if (found >= PAGE) return;
        found += keys.length;
        yield keys;
      }
    },
  }),
  'sorts entries by UTF-16': ({ entries }) => ({
    async entries(set, { low = '', high, limit, reverse }) {
      const all = [...(await entries(set, { limit: Number.MAX_SAFE_INTEGER, reverse: false }))].sort();
      const within = all.filter((one) => one >= low && (high === undefined || one < high));
      return (reverse ? within.reverse() : within).slice(0, limit);
    },
  }),
} satisfies Record<string, Change>;

export type WrongDriver = keyof typeof wrongDrivers;

const ANY_FIELDS = 'a row in memory has any fields';

/** A dialect over a driver in memory, with the changes of a wrong one, for the cases that need one process only. */
export function driverUnderTest(change: Change = () => ({})): DialectUnderTest {
  const memories = new Map<string, Memory>();
  const memoryOf = (url: string): Memory => {
    const memory = memories.get(url) ?? emptyMemory();
    memories.set(url, memory);
    return memory;
  };
  const rowsOf = ({ url }: TestDatabase, table: string) =>
    [...memoryOf(url).rows].filter(([key]) => key.startsWith(`${table}:`));
  return {
    name: 'memory',
    dialect: keyValueDialect({
      name: 'memory',
      unsupported: UNSUPPORTED_BY_KEY_VALUE,
      identify: (url) => url,
      open: async (url) => {
        const driver = memoryDriver(memoryOf(url));
        return { ...driver, ...change(driver) };
      },
    }),
    module: new URL(import.meta.url),
    createDatabase: async () => ({ url: `memory:${randomUUID()}`, drop: async () => undefined }),
    async insert(_connection, table, rows, fields, { url }) {
      const key = [...fields.values()].find(({ primaryKey }) => primaryKey)?.name ?? 'id';
      for (const row of rows) {
        const values = Object.entries(row).map(([name, value]) => [name, bytesOf(value, fields.get(name))]);
        if (memoryOf(url).rows.has(`${table}:${row[key]}`)) throw new Error(`${row[key]} exists`);
        memoryOf(url).rows.set(`${table}:${row[key]}`, Object.fromEntries(values));
      }
    },
    async read(connection, table, database) {
      const fields = (await connection.introspect([table])).get(table)?.fields;
      return rowsOf(database, table).map(([, row]) =>
        Object.fromEntries(
          Object.entries(row).map(([name, bytes]) => {
            const field = fields?.get(name);
            return [name, field && isBytes(field) ? bytes : bytes && Buffer.from(bytes).toString()];
          }),
        ),
      );
    },
    async clear(_connection, table, database) {
      for (const [key] of rowsOf(database, table)) memoryOf(database.url).rows.delete(key);
    },
    raw: () => ({ statement: '' }),
    notEnforced: { required: ANY_FIELDS, default: ANY_FIELDS, enum: ANY_FIELDS, length: ANY_FIELDS },
  };
}

function bytesOf(value: Json, field: Field | undefined): Uint8Array | null {
  if (value === null) return null;
  if (field && isBytes(field)) return Buffer.from(String(value), 'base64');
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
}
