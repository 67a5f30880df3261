import { createHash } from 'node:crypto';
import { type AnyRecordDefinition, columnOf, type RecordIndex, type RecordValues } from '../../../../core/records.ts';
import { identifierList, quoteIdentifier } from '../compile/names.ts';
import type { Session } from '../connection/session.ts';
import { compareValues, encodeColumn, recordColumnType } from './record-values.ts';

/*
 * Each index has a table. Its rows are added before the record is written, removed after the record changes, and used
 * only if the record confirms them. A partition per value is split into shards to limit its size. Tombstones expire
 * early, because a row that reappears is harmless.
 */
export const SHARD_COUNT = 8;
const GRACE_SECONDS = 600;

export type Index = RecordIndex<RecordValues>;

export const indexTable = ({ collection }: AnyRecordDefinition, { name }: Index): string => `${collection}_${name}`;

export function createIndexTableCql(definition: AnyRecordDefinition, index: Index): string {
  const type = (name: string) => recordColumnType(columnOf(definition, name));
  const equals = index.equals.map(equalsColumn);
  const columns = [
    ...index.equals.map((name) => `${quoteIdentifier(equalsColumn(name))} ${type(name)}`),
    'shard int',
    `sort ${type(index.sort)}`,
    'key text',
    'version bigint',
    'at timestamp',
  ];
  return `CREATE TABLE IF NOT EXISTS ${quoteIdentifier(indexTable(definition, index))} (${columns.join(', ')}, PRIMARY KEY ((${[...equals.map(quoteIdentifier), 'shard'].join(', ')}), sort, key, version)) WITH gc_grace_seconds = ${GRACE_SECONDS}`;
}

export const equalsColumn = (name: string): string => `equals_${name}`;

export const shardOf = (key: string): number => (createHash('sha256').update(key).digest()[0] ?? 0) % SHARD_COUNT;

/** The key columns of a record's index row; undefined if a value is null, which leaves the record out of the index. */
export function indexRowValues(
  definition: AnyRecordDefinition,
  index: Index,
  record: RecordValues,
): readonly unknown[] | undefined {
  const values = [...index.equals, index.sort].map((name) => record[name] ?? null);
  if (values.includes(null)) return undefined;
  const key = record[definition.key] as string;
  const encoded = [...index.equals, index.sort].map((name) =>
    encodeColumn(record[name], columnOf(definition, name), name),
  );
  return [...encoded.slice(0, -1), shardOf(key), encoded.at(-1), key];
}

/** Called before the record gets this version. Skips indexes whose values do not change. */
export async function addIndexRows(
  session: Session,
  definition: AnyRecordDefinition,
  record: RecordValues,
  version: number,
  old?: RecordValues,
): Promise<void> {
  await Promise.all(
    definition.indexes.map(async (index) => {
      const rowKey = indexRowValues(definition, index, record);
      if (!rowKey || (old && hasSameIndexValues(index, old, record))) return;
      const names = [...index.equals.map(equalsColumn), 'shard', 'sort', 'key', 'version', 'at'];
      const cql = `INSERT INTO ${quoteIdentifier(indexTable(definition, index))} (${identifierList(names)}) VALUES (${names.map(() => '?').join(', ')})`;
      await session.write(cql, [...rowKey, BigInt(version), new Date()]);
    }),
  );
}

/** Called after the record has changed or is gone. Removes the index rows up to this version. */
export async function removeIndexRows(
  session: Session,
  definition: AnyRecordDefinition,
  old: RecordValues,
  version: number,
  record?: RecordValues,
): Promise<void> {
  await Promise.all(
    definition.indexes.map(async (index) => {
      const rowKey = indexRowValues(definition, index, old);
      if (!rowKey || (record && hasSameIndexValues(index, old, record))) return;
      await removeIndexRow(session, definition, index, rowKey, version);
    }),
  );
}

export async function removeIndexRow(
  session: Session,
  definition: AnyRecordDefinition,
  index: Index,
  rowKey: readonly unknown[],
  version: number,
): Promise<void> {
  const conditions = [...index.equals.map(equalsColumn), 'shard', 'sort', 'key'].map(
    (name) => `${quoteIdentifier(name)} = ?`,
  );
  const cql = `DELETE FROM ${quoteIdentifier(indexTable(definition, index))} WHERE ${conditions.join(' AND ')} AND version <= ?`;
  await session.write(cql, [...rowKey, BigInt(version)]);
}

function hasSameIndexValues(index: Index, a: RecordValues, b: RecordValues): boolean {
  return [...index.equals, index.sort].every((name) => compareValues(a[name] ?? null, b[name] ?? null) === 0);
}
