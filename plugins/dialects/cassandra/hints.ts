import { createHash } from 'node:crypto';
import type { AnyRecordDefinition, RecordIndex, RecordValues } from '../../../core/records.ts';
import { encodeRecord, recordType } from './codec.ts';
import { list, quote } from './names.ts';
import { compare } from './order.ts';
import type { Session } from './session.ts';

/*
 * A table for each index. Its rows are hints: written before the record, taken away after it, and believed only where
 * the record says the same. Partitions of one value are divided into shards, so that none grows without end; what is
 * dropped goes soon, since a hint that comes back does no harm.
 */
export const SHARDS = 8;
const GRACE_SECONDS = 600;

export type Index = RecordIndex<RecordValues>;

export const hintTable = ({ collection }: AnyRecordDefinition, { name }: Index): string => `${collection}_${name}`;

export function hintTableText(definition: AnyRecordDefinition, index: Index): string {
  const type = (name: string) => recordType(columnOf(definition, name));
  const equals = index.equals.map(equalsColumn);
  const columns = [
    ...index.equals.map((name) => `${quote(equalsColumn(name))} ${type(name)}`),
    'shard int',
    `sort ${type(index.sort)}`,
    'key text',
    'version bigint',
    'at timestamp',
  ];
  return `CREATE TABLE IF NOT EXISTS ${quote(hintTable(definition, index))} (${columns.join(', ')}, PRIMARY KEY ((${[...equals.map(quote), 'shard'].join(', ')}), sort, key, version)) WITH gc_grace_seconds = ${GRACE_SECONDS}`;
}

export const equalsColumn = (name: string): string => `is_${name}`;

export const shardOf = (key: string): number => (createHash('sha256').update(key).digest()[0] ?? 0) % SHARDS;

/** Where the hint of a record lies; nothing for one that the index does not list. */
export function spot(
  definition: AnyRecordDefinition,
  index: Index,
  record: RecordValues,
): readonly unknown[] | undefined {
  const values = [...index.equals, index.sort].map((name) => record[name] ?? null);
  if (values.includes(null)) return undefined;
  const key = record[definition.key] as string;
  const encoded = [...index.equals, index.sort].map((name) =>
    encodeRecord(record[name], columnOf(definition, name), name),
  );
  return [...encoded.slice(0, -1), shardOf(key), encoded.at(-1), key];
}

/** Before the record gets this version: in every index whose value changes. */
export async function announce(
  session: Session,
  definition: AnyRecordDefinition,
  record: RecordValues,
  version: number,
  old?: RecordValues,
): Promise<void> {
  await Promise.all(
    definition.indexes.map(async (index) => {
      const at = spot(definition, index, record);
      if (!at || (old && same(index, old, record))) return;
      const names = [...index.equals.map(equalsColumn), 'shard', 'sort', 'key', 'version', 'at'];
      const cql = `INSERT INTO ${quote(hintTable(definition, index))} (${list(names)}) VALUES (${names.map(() => '?').join(', ')})`;
      await session.write(cql, [...at, BigInt(version), new Date()]);
    }),
  );
}

/** After the record is another one, or gone: hints of this version and of those before it. */
export async function withdraw(
  session: Session,
  definition: AnyRecordDefinition,
  old: RecordValues,
  version: number,
  record?: RecordValues,
): Promise<void> {
  await Promise.all(
    definition.indexes.map(async (index) => {
      const at = spot(definition, index, old);
      if (!at || (record && same(index, old, record))) return;
      await drop(session, definition, index, at, version);
    }),
  );
}

export async function drop(
  session: Session,
  definition: AnyRecordDefinition,
  index: Index,
  at: readonly unknown[],
  version: number,
): Promise<void> {
  const conditions = [...index.equals.map(equalsColumn), 'shard', 'sort', 'key'].map((name) => `${quote(name)} = ?`);
  const cql = `DELETE FROM ${quote(hintTable(definition, index))} WHERE ${conditions.join(' AND ')} AND version <= ?`;
  await session.write(cql, [...at, BigInt(version)]);
}

function same(index: Index, a: RecordValues, b: RecordValues): boolean {
  return [...index.equals, index.sort].every((name) => compare(a[name] ?? null, b[name] ?? null) === 0);
}

export function columnOf(definition: AnyRecordDefinition, name: string): AnyRecordDefinition['columns'][string] {
  const column = definition.columns[name];
  if (!column) throw new Error(`${definition.collection} has no column ${name}`);
  return column;
}
