import { SvcError } from '../../../../core/errors.ts';
import { defineCollection } from '../../../../core/schema/define.ts';
import { alreadyExistsError, collectionOf, fieldOf } from '../../../../core/schema/find-or-throw.ts';
import type { Collection, Field, Index, SchemaModel } from '../../../../core/schema/model.ts';
import { assertNameFits } from '../../../../core/schema/names.ts';
import type { CreateCollection, CreateIndex } from '../../../../core/schema/operation.ts';
import { tableKey } from './key.ts';
import { ENGINE, identifierList, nameRules, quoteIdentifier } from './names.ts';
import { definitionOf, type IndexDefinition, indexText } from './native-index.ts';
import { assertNativeType } from './native-type.ts';
import { type CassandraStatement, registeredFields, statementFor } from './step.ts';
import { propertyTexts } from './table-properties.ts';
import { columnDefinition, columnType, isUnreadableType } from './types.ts';

export function createCollection(operation: CreateCollection, before: SchemaModel): CassandraStatement[] {
  const collection = defineCollection(operation);
  const { name: table, fields, options } = collection;
  assertNameFits(ENGINE, nameRules, table, 'table');
  for (const field of fields.values()) assertField(field, table);
  if (before.has(table) && !operation.options?.sqlOptions?.ifNotExists) throw alreadyExistsError('collection', table);
  const { partition, clustering } = tableKey(collection);
  const columns = [...fields.values()].map((field) => `${quoteIdentifier(field.name)} ${columnDefinition(field)}`);
  const parts = [`(${identifierList(partition)})`, ...clustering.map(({ name }) => quoteIdentifier(name))];
  const order = clustering.map(({ name, order: direction }) => `${quoteIdentifier(name)} ${direction}`).join(', ');
  const properties = [
    ...(clustering.some(({ order: direction }) => direction === 'DESC') ? [`CLUSTERING ORDER BY (${order})`] : []),
    ...propertyTexts(options.cassandraOptions ?? {}, table),
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

export function createIndex(operation: CreateIndex, before: SchemaModel): CassandraStatement[] {
  const { index, columns, native, cassandraOptions } = operation;
  const collection = collectionOf(before, operation.collection);
  assertNameFits(ENGINE, nameRules, index, 'index');
  for (const other of before.values()) {
    if (other.name !== collection.name && other.indexes.has(index))
      throw alreadyExistsError('index', index, other.name);
  }
  const definition = definitionOf({ name: index, columns, native, cassandraOptions } as Index, collection.name);
  const field = fieldOf(collection, definition.column);
  assertIndexable(collection, field, index, definition);
  // Before 5.0, only a custom index has a class.
  const isCustom = definition.using !== undefined && definition.using !== 'sai';
  const cql = `CREATE ${isCustom ? 'CUSTOM ' : ''}INDEX ${quoteIdentifier(index)} ON ${quoteIdentifier(collection.name)} ${indexText(definition)}`;
  return [statementFor(cql, { kind: 'ddl', cql, table: collection.name, effect: { index, target: field.name } })];
}

function assertIndexable(collection: Collection, field: Field, index: string, definition: IndexDefinition): void {
  const notIndexable = (why: string, next: string) =>
    new SvcError('not_supported', `Cassandra cannot create the index "${index}" on "${collection.name}".`, {
      why,
      next: [next],
    });
  const { partition } = tableKey(collection);
  if (partition.length === 1 && partition[0] === field.name) {
    throw notIndexable(`"${field.name}" is the whole partition key, which needs no index.`, 'Remove the index.');
  }
  const { using, part } = definition;
  const duplicate = [...collection.indexes.values()].find((other) => {
    const known = definitionOf(other, collection.name);
    return known.column === field.name && known.using === using && known.part === part && other.name !== index;
  });
  if (duplicate)
    throw notIndexable(`"${duplicate.name}" is already an index on the same field.`, 'Remove one of the two.');
  if (using !== 'sai') return;
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
  if (field.native !== undefined) assertNativeField(field, field.native, table);
  if (field.type !== 'array' || field.items !== 'array') return;
  throw new SvcError('field_invalid', `The field "${table}.${field.name}" cannot be used on Cassandra.`, {
    why: 'Lists of lists are not supported.',
    next: ['Use the type json.'],
  });
}

/** A default is written to each row, in the type of the field. */
function assertNativeField({ name, default: value, autoGenerate }: Field, native: string, table: string): void {
  const { type, isStatic } = assertNativeType(native, name, table);
  if ((value === undefined && !autoGenerate) || (!isStatic && !isUnreadableType(type))) return;
  throw new SvcError('field_invalid', `The field "${table}.${name}" cannot have a default on Cassandra.`, {
    why: isStatic
      ? 'It is static: its value belongs to the partition, not to a row.'
      : `svc cannot write values of the type ${type}.`,
    next: ['Leave the default out, and set the value in your INSERT.'],
  });
}
