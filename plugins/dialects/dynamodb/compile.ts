import type { Statement } from '../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../core/errors.ts';
import { apply } from '../../../core/schema/apply.ts';
import { isExpression } from '../../../core/schema/default.ts';
import { defineCollection, defineField, writtenField } from '../../../core/schema/define.ts';
import { refuseUnsupported } from '../../../core/schema/features.ts';
import { collectionOf, exists, fieldOf } from '../../../core/schema/lookup.ts';
import type { Collection, Field, SchemaModel } from '../../../core/schema/model.ts';
import { checkName, checkNameFits, type NameKind } from '../../../core/schema/names.ts';
import type {
  AddField,
  CreateCollection,
  CreateIndex,
  DropField,
  DropIndex,
  Operation,
  RenameField,
} from '../../../core/schema/operation.ts';
import { definitionOf } from './definition.ts';
import { modifyField } from './modify.ts';
import { names } from './names.ts';
import { checkOptions } from './options.ts';
import { raw } from './raw.ts';
import { refusals } from './refusals.ts';
import { indexOn, indexShape, keyNames, shapeOf } from './shape.ts';
import { statement } from './step.ts';
import { fieldText, indexText, tableText } from './text.ts';
import { encoded } from './value.ts';

const NAME = 'dynamodb';
const MOST_GLOBALS = 20;

/** The statements of an operation on the model before it. */
export function compile(operation: Operation, before: SchemaModel): readonly Statement[] {
  const keyed = operation.type === 'createCollection' && operation.options?.dynamoOptions?.partitionKey !== undefined;
  const { tableWithoutKey: _, ...others } = refusals;
  refuseUnsupported(NAME, keyed ? others : refusals, operation, before);
  switch (operation.type) {
    case 'createCollection':
      return createCollection(operation, before);
    case 'dropCollection': {
      const { collection: table } = operation;
      return [statement(`DeleteTable ${table}`, { do: 'drop', table }, { destructive: true })];
    }
    case 'addField':
      return addField(operation, before);
    case 'dropField':
      return dropField(operation, before);
    case 'renameField':
      return renameField(operation, before);
    case 'modifyField':
      return modifyField(operation, before);
    case 'createIndex':
      return createIndex(operation, before);
    case 'dropIndex':
      return dropIndex(operation, before);
    case 'raw':
      return operation.dialect === NAME ? raw(operation) : [];
    case 'renameCollection':
    case 'addConstraint':
    case 'dropConstraint':
      // Refused above; a constraint that cannot be added is none that could be dropped.
      throw new SvcError('constraint_unknown', 'DynamoDB has no constraints.', { state: 'Nothing was changed.' });
  }
}

function fits(name: string, kind: NameKind): void {
  checkName(name, kind);
  checkNameFits(NAME, names, name, kind);
}

/** The collection as the operation leaves it, and as DynamoDB would have it. */
function after(operation: Operation, before: SchemaModel, table: string): Collection {
  const next = collectionOf(apply(before, operation), table);
  shapeOf(next);
  return next;
}

function createCollection(operation: CreateCollection, before: SchemaModel): Statement[] {
  const collection = defineCollection(operation);
  const { name } = collection;
  fits(name, 'table');
  for (const field of collection.fields.keys()) fits(field, 'field');
  if (before.has(name) && !operation.options?.sqlOptions?.ifNotExists) throw exists('collection', name);
  checkOptions(collection);
  const shape = shapeOf(collection);
  for (const index of [...shape.globals, ...shape.locals]) fits(index.name, 'index');
  return [
    statement(`CreateTable ${tableText(name, shape, collection)}`, {
      do: 'create',
      table: name,
      definition: definitionOf(collection),
    }),
  ];
}

function addField(operation: AddField, before: SchemaModel): Statement[] {
  const { collection: table } = operation;
  fits(operation.field.name, 'field');
  const next = after(operation, before, table);
  const { name, ...definition } = operation.field;
  const field = defineField(name, definition, table);
  const filled = field.default !== undefined || field.autoGenerate === true;
  refuseUnstorable(field, table);
  const condition = field.required && !filled ? { empty: name } : { added: writtenField(field) };
  return [
    statement(
      `Describe ${table}: add ${fieldText(field)}, where ${condition.empty === undefined ? `no item has another ${name}` : 'it has no items'}`,
      {
        do: 'describe',
        table,
        definition: definitionOf(next),
        ...condition,
      },
    ),
    ...(filled
      ? [
          statement(`Update each item of ${table}: give ${name} its default where it has no value`, {
            do: 'move',
            table,
            move: { kind: 'fill', field: writtenField(field) },
          }),
        ]
      : []),
  ];
}

/** It would be written into every item. */
function refuseUnstorable(field: Field, table: string): void {
  const { name, default: value } = field;
  if (value === undefined || value === 'now' || isExpression(value)) return;
  try {
    encoded(value, field);
  } catch (error) {
    if (!isSvcError(error)) throw error;
    throw new SvcError('field_invalid', `dynamodb cannot hold the default of "${table}.${name}".`, {
      why: error.why ?? error.message,
      next: ['Give another default, or make the field a string.'],
    });
  }
}

function dropField(operation: DropField, before: SchemaModel): Statement[] {
  const { collection: table, field } = operation;
  const collection = collectionOf(before, table);
  fieldOf(collection, field);
  refuseKey(collection, field, 'dropped');
  const next = after(operation, before, table);
  return [
    statement(`Describe ${table}: without ${field}`, { do: 'describe', table, definition: definitionOf(next) }),
    statement(
      `Update each item of ${table}: remove ${field}`,
      { do: 'move', table, move: { kind: 'remove', field } },
      { destructive: true },
    ),
  ];
}

function renameField(operation: RenameField, before: SchemaModel): Statement[] {
  const { collection: table, from, to } = operation;
  fits(to, 'field');
  const collection = collectionOf(before, table);
  fieldOf(collection, from);
  refuseKey(collection, from, 'renamed');
  const next = after(operation, before, table);
  const move = { kind: 'rename', from, to } as const;
  return [
    statement(`Scan ${table}: no item has both ${from} and ${to}`, { do: 'check', table, move }),
    statement(`Update each item of ${table}: rename ${from} to ${to}`, { do: 'move', table, move }),
    statement(`Describe ${table}: ${to} in the place of ${from}`, {
      do: 'describe',
      table,
      definition: definitionOf(next),
    }),
  ];
}

/** Whatever a key or the time to live is made of stays as it is. */
function refuseKey(collection: Collection, field: string, done: 'dropped' | 'renamed'): void {
  const shape = shapeOf(collection);
  const refuse = (why: string, next: string) =>
    new SvcError('not_supported', `${NAME} cannot have "${collection.name}.${field}" ${done}.`, { why, next: [next] });
  if (keyNames(shape).includes(field)) {
    throw refuse('It is the key of the table, which can never be changed.', refusals.changeKey?.next ?? '');
  }
  const index = indexOn(shape, field);
  if (index !== undefined) {
    throw refuse(
      `The index "${index}" is on it.`,
      collection.indexes.has(index)
        ? `Drop the index "${index}" first and create it again afterwards.`
        : 'An index of the options stays as long as its table.',
    );
  }
  if (shape.ttl === field) throw refuse('The time to live counts by it.', 'Keep its name, or create a new table.');
}

function createIndex(operation: CreateIndex, before: SchemaModel): Statement[] {
  const { collection: table, index } = operation;
  fits(index, 'index');
  const next = after(operation, before, table);
  const { globals, locals } = shapeOf(next);
  const declared = next.indexes.get(index);
  if (!declared) throw new Error(`the index ${index} was not created`);
  if ([...globals, ...locals].filter(({ name }) => name === index).length > 1) throw exists('index', index, table);
  if (globals.length > MOST_GLOBALS) {
    throw new SvcError('not_supported', `${NAME} cannot have ${globals.length} indexes on "${table}".`, {
      why: `A table has at most ${MOST_GLOBALS} global indexes.`,
      next: ['Drop one that no query uses.'],
    });
  }
  return [
    statement(`UpdateTable ${table}: create the index ${indexText(indexShape(next, declared))}`, {
      do: 'createIndex',
      table,
      index,
      definition: definitionOf(next),
    }),
  ];
}

function dropIndex(operation: DropIndex, before: SchemaModel): Statement[] {
  const { collection: table, index } = operation;
  const next = after(operation, before, table);
  return [
    statement(`UpdateTable ${table}: delete the index ${index}`, {
      do: 'dropIndex',
      table,
      index,
      definition: definitionOf(next),
    }),
  ];
}
