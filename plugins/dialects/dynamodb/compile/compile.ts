import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { apply } from '../../../../core/schema/apply.ts';
import { defineCollection, defineField, toFieldDefinition } from '../../../../core/schema/define.ts';
import { alreadyExistsError, collectionOf, fieldOf } from '../../../../core/schema/find-or-throw.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { Collection, Field, SchemaModel } from '../../../../core/schema/model.ts';
import { assertName, assertNameFits, type NameKind } from '../../../../core/schema/names.ts';
import type {
  AddField,
  CreateCollection,
  CreateIndex,
  DropField,
  DropIndex,
  Operation,
  RenameField,
} from '../../../../core/schema/operation.ts';
import { assertSupported } from '../../../../core/schema/unsupported-features.ts';
import { definitionOf } from '../catalog/registry.ts';
import {
  assertTableOptions,
  indexKeyedBy,
  keyNames,
  MAX_GLOBAL_INDEXES,
  shapeOfCollection,
  shapeOfIndex,
} from '../catalog/table-shape.ts';
import { encodeValue } from '../data/attribute.ts';
import { modifyField } from './modify-field.ts';
import { NAME, nameRules } from './names.ts';
import { compileRaw } from './raw-request.ts';
import { type DynamoStatement, fieldText, indexText, statementFor, tableText } from './step.ts';
import { unsupported } from './unsupported-features.ts';

export function compile(operation: Operation, before: SchemaModel): readonly DynamoStatement[] {
  const hasPartitionKey =
    operation.type === 'createCollection' && operation.options?.dynamoOptions?.partitionKey !== undefined;
  const { tableWithoutKey: _, ...others } = unsupported;
  assertSupported('DynamoDB', hasPartitionKey ? others : unsupported, operation, before);
  switch (operation.type) {
    case 'createCollection':
      return createCollection(operation, before);
    case 'dropCollection': {
      const { collection: table } = operation;
      return [statementFor(`DeleteTable ${table}`, { kind: 'drop', table }, { destructive: true })];
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
      return operation.dialect === NAME ? compileRaw(operation) : [];
    case 'renameCollection':
    case 'addConstraint':
    case 'dropConstraint':
      // Adding was rejected above, so no constraint exists.
      throw new SvcError('constraint_unknown', 'DynamoDB has no constraints.', { state: 'Nothing was changed.' });
  }
}

function assertDynamoName(name: string, kind: NameKind): void {
  assertName(name, kind);
  assertNameFits('DynamoDB', nameRules, name, kind);
}

/** The collection after the operation. Throws if DynamoDB cannot store it. */
function collectionAfter(operation: Operation, before: SchemaModel, table: string): Collection {
  const next = collectionOf(apply(before, operation), table);
  shapeOfCollection(next);
  return next;
}

function createCollection(operation: CreateCollection, before: SchemaModel): DynamoStatement[] {
  const collection = defineCollection(operation);
  const { name } = collection;
  assertDynamoName(name, 'table');
  for (const field of collection.fields.keys()) assertDynamoName(field, 'field');
  if (before.has(name) && !operation.options?.sqlOptions?.ifNotExists) throw alreadyExistsError('collection', name);
  assertTableOptions(collection);
  const shape = shapeOfCollection(collection);
  for (const index of [...shape.globals, ...shape.locals]) assertDynamoName(index.name, 'index');
  return [
    statementFor(`CreateTable ${tableText(name, shape, collection)}`, {
      kind: 'create',
      table: name,
      definition: definitionOf(collection),
    }),
  ];
}

function addField(operation: AddField, before: SchemaModel): DynamoStatement[] {
  const { collection: table } = operation;
  assertDynamoName(operation.field.name, 'field');
  const next = collectionAfter(operation, before, table);
  const { name, ...definition } = operation.field;
  const field = defineField(name, definition, table);
  const hasDefault = field.default !== undefined || field.autoGenerate === true;
  assertStorableDefault(field, table);
  const condition = field.required && !hasDefault ? { empty: name } : { added: toFieldDefinition(field) };
  return [
    statementFor(
      `Register ${table}: add ${fieldText(field)}, if ${condition.empty === undefined ? `no item has another ${name}` : 'the table has no items'}`,
      {
        kind: 'register',
        table,
        definition: definitionOf(next),
        ...condition,
      },
    ),
    ...(hasDefault
      ? [
          statementFor(`Update each item of ${table}: set ${name} to its default if it has no value`, {
            kind: 'move',
            table,
            move: { kind: 'fill', field: toFieldDefinition(field) },
          }),
        ]
      : []),
  ];
}

function assertStorableDefault(field: Field, table: string): void {
  const { name, default: value } = field;
  if (value === undefined || value === 'now' || isExpression(value)) return;
  try {
    encodeValue(value, field);
  } catch (error) {
    if (!isSvcError(error)) throw error;
    throw new SvcError('field_invalid', `DynamoDB cannot store the default of "${table}.${name}".`, {
      why: error.why ?? error.message,
      next: ['Use another default, or make the field a string.'],
    });
  }
}

function dropField(operation: DropField, before: SchemaModel): DynamoStatement[] {
  const { collection: table, field } = operation;
  const collection = collectionOf(before, table);
  fieldOf(collection, field);
  assertNotKey(collection, field, 'dropped');
  const next = collectionAfter(operation, before, table);
  return [
    statementFor(`Register ${table}: without ${field}`, { kind: 'register', table, definition: definitionOf(next) }),
    statementFor(
      `Update each item of ${table}: remove ${field}`,
      { kind: 'move', table, move: { kind: 'remove', field } },
      { destructive: true },
    ),
  ];
}

function renameField(operation: RenameField, before: SchemaModel): DynamoStatement[] {
  const { collection: table, from, to } = operation;
  assertDynamoName(to, 'field');
  const collection = collectionOf(before, table);
  fieldOf(collection, from);
  assertNotKey(collection, from, 'renamed');
  const next = collectionAfter(operation, before, table);
  const move = { kind: 'rename', from, to } as const;
  return [
    statementFor(`Scan ${table}: no item has both ${from} and ${to}`, { kind: 'check', table, move }),
    statementFor(`Update each item of ${table}: rename ${from} to ${to}`, { kind: 'move', table, move }),
    statementFor(`Register ${table}: ${to} instead of ${from}`, {
      kind: 'register',
      table,
      definition: definitionOf(next),
    }),
  ];
}

/** Fields of keys, and the time-to-live attribute, cannot be dropped or renamed. */
function assertNotKey(collection: Collection, field: string, change: 'dropped' | 'renamed'): void {
  const shape = shapeOfCollection(collection);
  const keyError = (why: string, next: string) =>
    new SvcError('not_supported', `The field "${collection.name}.${field}" cannot be ${change}.`, {
      why,
      next: [next],
    });
  if (keyNames(shape).includes(field)) {
    throw keyError('It is the key of the table, which can never be changed.', unsupported.changeKey?.next ?? '');
  }
  const index = indexKeyedBy(shape, field);
  if (index !== undefined) {
    throw keyError(
      `The index "${index}" uses it.`,
      collection.indexes.has(index)
        ? `Drop the index "${index}" first and create it again afterwards.`
        : 'An index of dynamoOptions cannot be dropped without its table.',
    );
  }
  if (shape.ttl === field) throw keyError('The time to live uses it.', 'Keep the field, or create a new table.');
}

function createIndex(operation: CreateIndex, before: SchemaModel): DynamoStatement[] {
  const { collection: table, index } = operation;
  assertDynamoName(index, 'index');
  const next = collectionAfter(operation, before, table);
  const { globals, locals } = shapeOfCollection(next);
  const declared = next.indexes.get(index);
  if (!declared) throw new Error(`the index ${index} was not created`);
  if ([...globals, ...locals].filter(({ name }) => name === index).length > 1)
    throw alreadyExistsError('index', index, table);
  if (globals.length > MAX_GLOBAL_INDEXES) {
    throw new SvcError('not_supported', `DynamoDB cannot have ${globals.length} indexes on "${table}".`, {
      why: `A table has at most ${MAX_GLOBAL_INDEXES} global indexes.`,
      next: ['Drop an index that no query uses.'],
    });
  }
  return [
    statementFor(`UpdateTable ${table}: create the index ${indexText(shapeOfIndex(next, declared))}`, {
      kind: 'createIndex',
      table,
      index,
      definition: definitionOf(next),
    }),
  ];
}

function dropIndex(operation: DropIndex, before: SchemaModel): DynamoStatement[] {
  const { collection: table, index } = operation;
  const next = collectionAfter(operation, before, table);
  return [
    statementFor(`UpdateTable ${table}: delete the index ${index}`, {
      kind: 'dropIndex',
      table,
      index,
      definition: definitionOf(next),
    }),
  ];
}
