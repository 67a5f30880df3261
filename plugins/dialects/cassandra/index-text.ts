import type { Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { collectionOf, exists, fieldOf } from '../../../core/schema/lookup.ts';
import type { Collection, Field, SchemaModel } from '../../../core/schema/model.ts';
import { checkNameFits } from '../../../core/schema/names.ts';
import type { CreateIndex } from '../../../core/schema/operation.ts';
import { keyOf } from './key.ts';
import { ENGINE, nameRules, quote } from './names.ts';
import { statement } from './statement.ts';
import { columnType } from './types.ts';

/** One column; names of indexes are unique in the keyspace. */
export function createIndex(operation: CreateIndex, before: SchemaModel): Statement[] {
  const { index, columns, cassandraOptions } = operation;
  const collection = collectionOf(before, operation.collection);
  checkNameFits(ENGINE, nameRules, index, 'index');
  for (const other of before.values()) {
    if (other.name !== collection.name && other.indexes.has(index)) throw exists('index', index, other.name);
  }
  const [column = { name: '' }] = columns;
  const field = fieldOf(collection, column.name);
  const sai = cassandraOptions?.using === 'sai';
  refuseUnfit(collection, field, index, sai);
  const cql = `CREATE INDEX ${quote(index)} ON ${quote(collection.name)} (${quote(field.name)})${sai ? " USING 'sai'" : ''}`;
  return [statement(cql, { kind: 'ddl', cql, table: collection.name, effect: { index, target: field.name } })];
}

function refuseUnfit(collection: Collection, field: Field, index: string, sai: boolean): void {
  const refuse = (why: string, next: string) =>
    new SvcError('not_supported', `Cassandra cannot make the index "${index}" of "${collection.name}".`, {
      why,
      next: [next],
    });
  const { partition } = keyOf(collection);
  if (partition.length === 1 && partition[0] === field.name) {
    throw refuse(`"${field.name}" is the whole partition key: rows are found by it already.`, 'Leave the index out.');
  }
  const twin = [...collection.indexes.values()].find(
    (other) =>
      other.columns[0]?.name === field.name &&
      (other.cassandraOptions?.using === 'sai') === sai &&
      other.name !== index,
  );
  if (twin) throw refuse(`"${twin.name}" is an index of the same field already.`, 'Leave one of the two out.');
  if (!sai) return;
  if (columnType(field) === 'blob' || columnType(field) === 'list<blob>') {
    throw refuse('An index of the kind sai takes no blob.', "Leave using: 'sai' out.");
  }
  if (!/^\w+$/.test(field.name)) {
    throw refuse(
      'An index of the kind sai takes columns only whose names have letters A to Z, digits and underscores.',
      "Leave using: 'sai' out.",
    );
  }
}
