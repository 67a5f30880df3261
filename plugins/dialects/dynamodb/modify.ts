import { isDeepStrictEqual } from 'node:util';
import type { Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { apply } from '../../../core/schema/apply.ts';
import { writtenField } from '../../../core/schema/define.ts';
import { collectionOf, fieldOf } from '../../../core/schema/lookup.ts';
import type { Field, SchemaModel } from '../../../core/schema/model.ts';
import type { ModifyField } from '../../../core/schema/operation.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { definitionOf } from './definition.ts';
import { checkOptions } from './options.ts';
import { indexOn, keyNames, shapeOf } from './shape.ts';
import { type Move, statement } from './step.ts';
import { fieldText } from './text.ts';
import { keyType } from './types.ts';

/** Types whose every value is one of the other as it stands. */
const WIDER: Readonly<Partial<Record<FieldType, readonly FieldType[]>>> = {
  smallint: ['integer', 'bigint', 'float', 'double'],
  integer: ['bigint', 'double'],
  float: ['double'],
  string: ['text'],
  enum: ['text'],
  uuid: ['text'],
  binary: ['blob'],
};

/** Only the registry knows a field's definition; items are read where it narrows, and written where a type changes. */
export function modifyField(operation: ModifyField, before: SchemaModel): Statement[] {
  const { collection: table, field: name } = operation;
  const collection = collectionOf(before, table);
  const from = fieldOf(collection, name);
  const next = collectionOf(apply(before, operation), table);
  const to = fieldOf(next, name);
  if (isDeepStrictEqual(from, to)) return [];
  const shape = shapeOf(collection);
  const index = indexOn(shape, name);
  const inKey = keyNames(shape).includes(name) || index !== undefined;
  if (inKey && keyType(from.type) !== keyType(to.type)) {
    throw new SvcError('not_supported', `dynamodb cannot change the type of "${table}.${name}" to ${to.type}.`, {
      why: `It is in the key of ${index === undefined ? 'the table' : `the index "${index}"`}, whose type stays ${keyType(from.type)}.`,
      next: [
        index !== undefined && collection.indexes.has(index)
          ? `Drop the index "${index}", change the field, and create the index again.`
          : 'Create a table of another name with the key that is wanted, and copy the items.',
      ],
    });
  }
  checkOptions(next);
  shapeOf(next);
  const describe = statement(`Describe ${table}: ${fieldText(to)}`, {
    do: 'describe',
    table,
    definition: definitionOf(next),
  });
  if (!narrows(from, to)) return [describe];
  const was = { type: from.type, ...(from.items && { items: from.items }) };
  const move: Move = { kind: 'convert', field: writtenField(to), from: was, ...(inKey && { key: true }) };
  const check = statement(`Scan ${table}: every ${name} fits ${fieldText(to)}`, { do: 'check', table, move });
  if (inKey || !isRetyped(from, to)) return [check, describe];
  return [
    check,
    statement(`Update each item of ${table}: write ${name} as ${to.type}`, { do: 'move', table, move }),
    describe,
  ];
}

const isRetyped = (from: Field, to: Field): boolean => from.type !== to.type || from.items !== to.items;

/** A value that was fine may be so no more. */
function narrows(from: Field, to: Field): boolean {
  if (to.required && !from.required) return true;
  if (isRetyped(from, to) && !(WIDER[from.type]?.includes(to.type) && to.items === undefined)) return true;
  if (to.length !== undefined && (from.length === undefined || to.length < from.length)) return true;
  if (to.precision !== undefined && (from.precision !== to.precision || from.scale !== to.scale)) return true;
  return to.enumValues !== undefined && !(from.enumValues ?? []).every((value) => to.enumValues?.includes(value));
}
