import { createHash } from 'node:crypto';
import type { AnyRecordDefinition, RecordValue, RecordValues } from '../../../core/records.ts';
import type { OwnTable } from './own-table.ts';

type Index = AnyRecordDefinition['indexes'][number];

/** One partition takes 1,000 writes a second: a value that many records share is spread. */
const SHARDS = 16;
/** Just above whatever begins with the text before it and goes on with a key. */
const ABOVE = '\u0001';
const LOWEST = '1';
const NULLS = '2';
const HIGHEST = '3';

/** An index that needs attributes of its own; one over the whole table is read from the table, consistently. */
export const isGlobal = ({ equals }: Index): boolean => equals.length > 0;

export const partitionName = ({ name }: Index): string => `_${name}`;
export const sortName = ({ name }: Index): string => `_${name}_at`;

export function ownTable(definition: AnyRecordDefinition): OwnTable {
  return {
    key: definition.key,
    indexes: definition.indexes.filter(isGlobal).map((index) => ({
      name: index.name,
      partition: partitionName(index),
      sort: sortName(index),
    })),
  };
}

/** Where a record stands in an index; undefined where it is in none, since a value that is asked for is null. */
export function placeIn(
  index: Index,
  definition: AnyRecordDefinition,
  record: RecordValues,
): { readonly partition: string; readonly at: string } | undefined {
  if (index.equals.some((column) => record[column] === null)) return undefined;
  const key = String(record[definition.key]);
  const shard = index.spread ? createHash('sha256').update(key).digest().readUInt8() % SHARDS : undefined;
  return { partition: partitionOf(index, record, shard), at: `${sortText(record[index.sort] ?? null)}\0${key}` };
}

/** The partitions in which records with these values stand. */
export function partitionsOf(index: Index, equals: Partial<RecordValues>): string[] {
  for (const column of index.equals) {
    if (equals[column] === undefined) throw new Error(`${index.name} needs a value for ${column}`);
  }
  if (!index.spread) return [partitionOf(index, equals, undefined)];
  return Array.from({ length: SHARDS }, (_, shard) => partitionOf(index, equals, shard));
}

function partitionOf(index: Index, values: Partial<RecordValues>, shard: number | undefined): string {
  const asked = JSON.stringify(index.equals.map((column) => values[column]));
  return shard === undefined ? asked : `${shard}#${asked}`;
}

/** Texts between which the places of a page are, both included. */
export function bounds(from: RecordValue | undefined, to: RecordValue | undefined): readonly [string, string] {
  return [
    from === undefined ? LOWEST : sortText(from),
    to !== undefined ? sortText(to) + ABOVE : from === undefined ? HIGHEST : NULLS,
  ];
}

/** A text that sorts as the value does; null comes last. */
export function sortText(value: RecordValue): string {
  if (value === null) return NULLS;
  if (typeof value === 'string') return `${LOWEST}${escaped(value)}`;
  if (typeof value === 'boolean') return `${LOWEST}${value ? 1 : 0}`;
  return `${LOWEST}${sortableNumber(value instanceof Date ? value.getTime() : Number(value))}`;
}

/** NUL ends the value before its key: one inside it would end it too early. */
function escaped(text: string): string {
  return text.replaceAll('\u0001', '\u0001\u0002').replaceAll('\0', '\u0001\u0001');
}

/** The bits of a double in hexadecimal, turned so that texts compare as the numbers do. */
function sortableNumber(value: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value === 0 ? 0 : value);
  const negative = (bytes[0] ?? 0) >= 0x80;
  for (const [index, byte] of bytes.entries()) bytes[index] = negative ? 255 - byte : index === 0 ? byte ^ 0x80 : byte;
  return bytes.toString('hex');
}
