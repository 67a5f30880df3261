import { SvcError } from '../../../../core/errors.ts';
import { defineCollection } from '../../../../core/schema/define.ts';
import { alreadyExistsError, collectionOf, fieldOf } from '../../../../core/schema/find-or-throw.ts';
import type { Collection, Field, SchemaModel } from '../../../../core/schema/model.ts';
import { assertNameFits } from '../../../../core/schema/names.ts';
import type { CreateCollection, CreateIndex } from '../../../../core/schema/operation.ts';
import type { CassandraOptions } from '../../../../core/schema/options.ts';
import { tableKey } from './key.ts';
import { ENGINE, identifierList, nameRules, quoteIdentifier } from './names.ts';
import { type CassandraStatement, registeredFields, statementFor } from './step.ts';
import { columnType } from './types.ts';

export function createCollection(operation: CreateCollection, before: SchemaModel): CassandraStatement[] {
  const collection = defineCollection(operation);
  const { name: table, fields, options } = collection;
  assertNameFits(ENGINE, nameRules, table, 'table');
  for (const field of fields.values()) assertField(field, table);
  if (before.has(table) && !operation.options?.sqlOptions?.ifNotExists) throw alreadyExistsError('collection', table);
  const { partition, clustering } = tableKey(collection);
  const columns = [...fields.values()].map((field) => `${quoteIdentifier(field.name)} ${columnType(field)}`);
  const parts = [`(${identifierList(partition)})`, ...clustering.map(({ name }) => quoteIdentifier(name))];
  const order = clustering.map(({ name, order: direction }) => `${quoteIdentifier(name)} ${direction}`).join(', ');
  const properties = [
    ...(clustering.some(({ order: direction }) => direction === 'DESC') ? [`CLUSTERING ORDER BY (${order})`] : []),
    ...tableProperties(options.cassandraOptions ?? {}, table),
  ];
  const cql = `CREATE TABLE ${quoteIdentifier(table)} (\n  ${[...columns, `PRIMARY KEY (${parts.join(', ')})`].join(',\n  ')}\n)${properties.length > 0 ? ` WITH ${properties.join(' AND ')}` : ''}`;
  const types = Object.fromEntries([...fields.values()].map((field) => [field.name, columnType(field)]));
  return [
    statementFor(withRegistryComment(cql, [...fields.values()]), {
      kind: 'ddl',
      cql,
      table,
      effect: { columns: types },
      registered: registeredFields(collection),
      creates: true,
    }),
  ];
}

const MAX_TTL = 630_720_000;

function tableProperties({ defaultTTL, compaction }: CassandraOptions, table: string): string[] {
  if (defaultTTL !== undefined && !(Number.isSafeInteger(defaultTTL) && defaultTTL >= 0 && defaultTTL <= MAX_TTL)) {
    throw invalidOption(
      table,
      'defaultTTL',
      `It is ${defaultTTL}, which is not a number of seconds from 0 to ${MAX_TTL}.`,
    );
  }
  return [
    ...(defaultTTL === undefined ? [] : [`default_time_to_live = ${defaultTTL}`]),
    ...(compaction === undefined ? [] : [`compaction = {${compactionText(compaction, table)}}`]),
  ];
}

function compactionText(compaction: NonNullable<CassandraOptions['compaction']>, table: string): string {
  if (typeof compaction.class !== 'string' || !/^[\w.]+$/.test(compaction.class)) {
    throw invalidOption(
      table,
      'compaction',
      'Its class must be the name of a strategy, such as "LeveledCompactionStrategy".',
    );
  }
  return Object.entries(compaction)
    .map(([name, value]) => {
      if (typeof value === 'object') throw invalidOption(table, 'compaction', `"${name}" is not a plain value.`);
      return `${quoteLiteral(name)}: ${quoteLiteral(String(value))}`;
    })
    .join(', ');
}

function invalidOption(table: string, option: string, why: string): SvcError {
  return new SvcError('schema_invalid', `The option ${option} of the table "${table}" cannot be used.`, {
    why,
    details: { path: ['options', 'cassandraOptions', option] },
  });
}

const quoteLiteral = (value: string): string => `'${value.replaceAll("'", "''")}'`;

export function createIndex(operation: CreateIndex, before: SchemaModel): CassandraStatement[] {
  const { index, columns, cassandraOptions } = operation;
  const collection = collectionOf(before, operation.collection);
  assertNameFits(ENGINE, nameRules, index, 'index');
  for (const other of before.values()) {
    if (other.name !== collection.name && other.indexes.has(index))
      throw alreadyExistsError('index', index, other.name);
  }
  const [column = { name: '' }] = columns;
  const field = fieldOf(collection, column.name);
  const sai = cassandraOptions?.using === 'sai';
  assertIndexable(collection, field, index, sai);
  const cql = `CREATE INDEX ${quoteIdentifier(index)} ON ${quoteIdentifier(collection.name)} (${quoteIdentifier(field.name)})${sai ? " USING 'sai'" : ''}`;
  return [statementFor(cql, { kind: 'ddl', cql, table: collection.name, effect: { index, target: field.name } })];
}

function assertIndexable(collection: Collection, field: Field, index: string, sai: boolean): void {
  const notIndexable = (why: string, next: string) =>
    new SvcError('not_supported', `Cassandra cannot create the index "${index}" on "${collection.name}".`, {
      why,
      next: [next],
    });
  const { partition } = tableKey(collection);
  if (partition.length === 1 && partition[0] === field.name) {
    throw notIndexable(`"${field.name}" is the whole partition key, which needs no index.`, 'Remove the index.');
  }
  const duplicate = [...collection.indexes.values()].find(
    (other) =>
      other.columns[0]?.name === field.name &&
      (other.cassandraOptions?.using === 'sai') === sai &&
      other.name !== index,
  );
  if (duplicate)
    throw notIndexable(`"${duplicate.name}" is already an index on the same field.`, 'Remove one of the two.');
  if (!sai) return;
  if (columnType(field) === 'blob' || columnType(field) === 'list<blob>') {
    throw notIndexable('An SAI index cannot contain a blob column.', "Remove using: 'sai'.");
  }
  if (!/^\w+$/.test(field.name)) {
    throw notIndexable(
      'The column name of an SAI index may contain only letters A to Z, digits and underscores.',
      "Remove using: 'sai'.",
    );
  }
}

/** Adds a comment with the properties that only the registry stores. */
export function withRegistryComment(cql: string, fields: readonly Field[]): string {
  const notes = fields.flatMap((field) => {
    const properties = [
      ...(field.required && !field.primaryKey ? ['required'] : []),
      ...(field.default === undefined ? [] : ['default']),
      ...(field.autoGenerate ? ['autoGenerate'] : []),
      ...(field.length === undefined ? [] : ['length']),
      ...(field.precision === undefined ? [] : ['precision']),
      ...(field.enumValues === undefined ? [] : ['enumValues']),
    ];
    return properties.length > 0 ? [`${field.name} (${properties.join(', ')})`] : [];
  });
  if (notes.length === 0) return cql;
  return `-- applied to svc's own writes only, not enforced by Cassandra: ${notes.join('; ').replaceAll('\n', ' ')}\n${cql}`;
}

export function assertField(field: Field, table: string): void {
  assertNameFits(ENGINE, nameRules, field.name, 'field');
  if (field.type !== 'array' || field.items !== 'array') return;
  throw new SvcError('field_invalid', `The field "${table}.${field.name}" cannot be used on Cassandra.`, {
    why: 'Lists of lists are not supported.',
    next: ['Use the type json.'],
  });
}
