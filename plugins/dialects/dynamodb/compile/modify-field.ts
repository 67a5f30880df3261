import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../../../../core/errors.ts';
import { apply } from '../../../../core/schema/apply.ts';
import { toFieldDefinition } from '../../../../core/schema/define.ts';
import { collectionOf, fieldOf } from '../../../../core/schema/find-or-throw.ts';
import type { Field, FieldType, SchemaModel } from '../../../../core/schema/model.ts';
import type { ModifyField } from '../../../../core/schema/operation.ts';
import { definitionOf } from '../catalog/registry.ts';
import { assertTableOptions, indexKeyedBy, keyNames, shapeOfCollection } from '../catalog/table-shape.ts';
import { type DynamoStatement, type FieldMove, fieldText, statementFor } from './step.ts';
import { keyType } from './types.ts';

/** Types to which values convert without being rewritten. */
const WIDENING: Readonly<Partial<Record<FieldType, readonly FieldType[]>>> = {
  smallint: ['integer', 'bigint', 'float', 'double'],
  integer: ['bigint', 'double'],
  float: ['double'],
  string: ['text'],
  enum: ['text'],
  uuid: ['text'],
  binary: ['blob'],
};

/** Changes the registry; reads all items if the definition narrows, and rewrites them if the type changes. */
export function modifyField(operation: ModifyField, before: SchemaModel): DynamoStatement[] {
  const { collection: table, field: name } = operation;
  const collection = collectionOf(before, table);
  const from = fieldOf(collection, name);
  const next = collectionOf(apply(before, operation), table);
  const to = fieldOf(next, name);
  if (isDeepStrictEqual(from, to)) return [];
  const shape = shapeOfCollection(collection);
  const index = indexKeyedBy(shape, name);
  const isKey = keyNames(shape).includes(name) || index !== undefined;
  if (isKey && keyType(from.type) !== keyType(to.type)) {
    throw new SvcError('not_supported', `DynamoDB cannot change the type of "${table}.${name}" to ${to.type}.`, {
      why: `It is in the key of ${index === undefined ? 'the table' : `the index "${index}"`}, whose type ${keyType(from.type)} is fixed.`,
      next: [
        index !== undefined && collection.indexes.has(index)
          ? `Drop the index "${index}", change the field, and create the index again.`
          : 'Create a table with a different name and the new key, and copy the items.',
      ],
    });
  }
  assertTableOptions(next);
  shapeOfCollection(next);
  const register = statementFor(`Register ${table}: ${fieldText(to)}`, {
    kind: 'register',
    table,
    definition: definitionOf(next),
  });
  if (!isNarrower(from, to)) return [register];
  const source = { type: from.type, ...(from.items && { items: from.items }) };
  const move: FieldMove = { kind: 'convert', field: toFieldDefinition(to), from: source, ...(isKey && { key: true }) };
  const check = statementFor(`Scan ${table}: every ${name} fits ${fieldText(to)}`, { kind: 'check', table, move });
  if (isKey || !changesType(from, to)) return [check, register];
  return [
    check,
    statementFor(`Update each item of ${table}: write ${name} as ${to.type}`, { kind: 'move', table, move }),
    register,
  ];
}

const changesType = (from: Field, to: Field): boolean => from.type !== to.type || from.items !== to.items;

/** Whether existing values may become invalid. */
function isNarrower(from: Field, to: Field): boolean {
  if (to.required && !from.required) return true;
  if (changesType(from, to) && !(WIDENING[from.type]?.includes(to.type) && to.items === undefined)) return true;
  if (to.length !== undefined && (from.length === undefined || to.length < from.length)) return true;
  if (to.precision !== undefined && (from.precision !== to.precision || from.scale !== to.scale)) return true;
  return to.enumValues !== undefined && !(from.enumValues ?? []).every((value) => to.enumValues?.includes(value));
}
