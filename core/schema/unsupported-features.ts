import { applyFieldChanges } from './define-field.ts';
import { primaryKeyFields } from './keys.ts';
import { isExpression } from './literal.ts';
import { type Collection, type Constraint, type Field, fieldType, type SchemaModel } from './model.ts';
import type { CreateCollection, FieldDefinition, ModifyField, Operation } from './operation.ts';
import { type UnsupportedUse, unsupportedError } from './unsupported-error.ts';

/** Features that some engines lack. Each text completes "<engine> cannot …". */
export const FEATURES = {
  tableWithoutKey: 'create a table without a primary key',
  temporaryTable: 'create a temporary table',
  unloggedTable: 'create an unlogged table',
  tableCollation: 'give a table a collation',
  comment: 'keep a comment',
  nativeTable: 'give a table options in its own language',
  mongoOptions: 'use mongoOptions',
  dynamoOptions: 'use dynamoOptions',
  cassandraOptions: 'use cassandraOptions',
  renameTable: 'rename a table',
  compositeKey: 'have a primary key of several fields',
  generated: 'generate the values of a field that is not an integer',
  generatedInteger: 'generate sequential integers for a field',
  required: 'enforce a required field',
  addRequired: 'add a required field that has no default',
  unique: 'enforce a unique field',
  default: 'give a field a default',
  array: 'have an array',
  arrayDefault: 'give an array a default',
  expressionDefault: 'give a field a default that is an expression',
  changeKey: 'change which fields are the primary key',
  changeKeyField: 'change the definition of a field of the primary key',
  changeIndexedField: 'change the type of an indexed field',
  changeType: 'change the type of a field',
  shortenField: 'shorten a field',
  nativeType: 'give a field a type in its own language',
  nativeIndex: 'have an index in its own language',
  nativeConstraint: 'have a constraint with options in its own language',
  dropField: 'drop a field',
  dropLastField: 'drop the only field of a table',
  renameField: 'rename a field',
  renameKeyField: 'rename a field of the primary key',
  renameIndexedField: 'rename an indexed field',
  renameUniqueField: 'rename a unique field',
  renameChanged: 'change the definition of a field while it is renamed',
  index: 'have an index',
  compositeIndex: 'have an index on several fields',
  uniqueIndex: 'have a unique index',
  descendingIndex: 'have a descending index',
  concurrentIndex: 'build an index CONCURRENTLY',
  longKey: 'have an index or key on a field of unlimited length',
  foreignKey: 'have a foreign key',
  setDefaultAction: 'use SET DEFAULT in a foreign key',
  uniqueConstraint: 'have a unique constraint',
  check: 'have a check constraint',
  primaryKeyConstraint: 'have a primary key constraint',
} as const;

export type Feature = keyof typeof FEATURES;

/** Why an engine lacks a feature, and what to do instead. Complete sentences. */
export interface UnsupportedReason {
  readonly why: string;
  readonly next: string;
}

export type UnsupportedFeatures = Readonly<Partial<Record<Feature, UnsupportedReason | undefined>>>;

/** Features an engine lacks by default. An engine that has one sets it to `undefined`. */
const UNSUPPORTED_BY_DEFAULT: UnsupportedFeatures = {
  renameChanged: {
    why: 'It changes fields in place, so there is no copy to convert.',
    next: 'Rename the field and modify it in two operations.',
  },
  nativeType: {
    why: 'Its fields have the types of svc only.',
    next: 'Remove "native" from the field.',
  },
  comment: { why: 'Its catalog has none.', next: 'Remove "comment".' },
  nativeTable: {
    why: 'Its tables have the options of svc only.',
    next: 'Remove "native" from the options of the table.',
  },
  nativeIndex: { why: 'Its indexes are those of svc only.', next: 'Remove "native" from the index.' },
  nativeConstraint: { why: 'Its constraints are those of svc only.', next: 'Remove "native" from the constraint.' },
  tableCollation: {
    why: 'It is a feature of MySQL and MariaDB.',
    next: 'Remove "collation" from the options of the table.',
  },
};

/** Why an engine lacks a feature. One that renames no fields renames none of the key either, unless it sets `renameKeyField`. */
export function unsupportedReason(unsupported: UnsupportedFeatures, feature: Feature): UnsupportedReason | undefined {
  if (feature in unsupported) return unsupported[feature];
  return feature === 'renameKeyField' ? unsupported.renameField : UNSUPPORTED_BY_DEFAULT[feature];
}

/** Throws `not_supported` with every feature that an operation requires and the engine lacks. */
export function assertSupported(
  engine: string,
  unsupported: UnsupportedFeatures,
  operation: Operation,
  before: SchemaModel,
): void {
  const uses: UnsupportedUse[] = [];
  let first: Feature | undefined;
  for (const [feature, field] of operationFeatures(operation, before)) {
    const reason = unsupportedReason(unsupported, feature);
    if (!reason) continue;
    first ??= feature;
    const what = `${engine} cannot ${FEATURES[feature]}`;
    uses.push({ what, subjects: [subject(operation, field)], why: reason.why, next: [reason.next] });
  }
  if (first !== undefined) throw unsupportedError(uses, { feature: first });
}

/** `field` is the one of a new table that requires the feature. */
function subject(operation: Operation, field: string | undefined): string {
  switch (operation.type) {
    case 'createCollection':
      return `"${[operation.name, ...(field === undefined ? [] : [field])].join('.')}"`;
    case 'addField':
      return `"${operation.collection}.${operation.field.name}"`;
    case 'dropField':
    case 'modifyField':
      return `"${operation.collection}.${operation.field}"`;
    case 'renameField':
      return `"${operation.collection}.${operation.from}"`;
    case 'createIndex':
    case 'dropIndex':
      return `"${operation.index}" of "${operation.collection}"`;
    case 'addConstraint':
      return `"${operation.constraint.name}" of "${operation.collection}"`;
    case 'dropConstraint':
      return `"${operation.constraint}" of "${operation.collection}"`;
    case 'raw':
      return 'raw';
    case 'dropCollection':
    case 'renameCollection':
      return `"${operation.collection}"`;
  }
}

/** The features an operation requires. The operation itself is not validated. */
export function requiredFeatures(operation: Operation, before: SchemaModel): ReadonlySet<Feature> {
  return new Set(Array.from(operationFeatures(operation, before), ([feature]) => feature));
}

/** The field is that of a new table which requires the feature; other operations name their field. */
function* operationFeatures(
  operation: Operation,
  before: SchemaModel,
): Generator<readonly [feature: Feature, field?: string]> {
  if (operation.type === 'createCollection') yield* createFeatures(operation);
  else for (const feature of changeFeatures(operation, before)) yield [feature];
}

function* changeFeatures(operation: Exclude<Operation, CreateCollection>, before: SchemaModel): Generator<Feature> {
  switch (operation.type) {
    case 'renameCollection':
      yield 'renameTable';
      break;
    case 'addField': {
      const { field } = operation;
      yield* fieldFeatures(field);
      if (isRequired(field) && !hasDefault(field) && !field.autoGenerate) yield 'addRequired';
      if (field.primaryKey) yield 'changeKey';
      break;
    }
    case 'dropField':
      yield 'dropField';
      if (before.get(operation.collection)?.fields.size === 1) yield 'dropLastField';
      if (before.get(operation.collection)?.fields.get(operation.field)?.primaryKey) yield 'changeKey';
      break;
    case 'renameField': {
      const collection = before.get(operation.collection);
      if (collection && isKeyField(collection, operation.from)) yield 'renameKeyField';
      else if (operation.strategy !== 'copy') yield 'renameField';
      if (collection && isIndexed(collection, operation.from)) yield 'renameIndexedField';
      if (collection?.fields.get(operation.from)?.unique) yield 'renameUniqueField';
      if (!operation.changes) break;
      yield 'renameChanged';
      const { type = collection?.fields.get(operation.from)?.type ?? '' } = operation.changes;
      yield* fieldFeatures(operation.changes as FieldDefinition, fieldType(type));
      if (operation.changes.primaryKey) yield 'changeKey';
      break;
    }
    case 'modifyField':
      yield* modifyFeatures(operation, before.get(operation.collection));
      break;
    case 'createIndex':
      yield 'index';
      if (operation.columns.length > 1) yield 'compositeIndex';
      if (
        operation.native === undefined &&
        operation.columns.some(({ name }) => isUnlimitedIn(before.get(operation.collection), [name]))
      )
        yield 'longKey';
      if (operation.unique) yield 'uniqueIndex';
      if (operation.columns.some(({ order }) => order?.toLowerCase() === 'desc')) yield 'descendingIndex';
      if (operation.sqlOptions?.concurrently) yield 'concurrentIndex';
      if (operation.native !== undefined) yield 'nativeIndex';
      if (operation.cassandraOptions) yield 'cassandraOptions';
      if (operation.mongoOptions) yield 'mongoOptions';
      break;
    case 'addConstraint': {
      const { constraint } = operation;
      if (constraint.native !== undefined) yield 'nativeConstraint';
      if (hasWholeFields(constraint) && isUnlimitedIn(before.get(operation.collection), constraint.columns ?? []))
        yield 'longKey';
      if (constraint.type === 'foreignKey') {
        yield 'foreignKey';
        const { onDelete, onUpdate } = constraint.references;
        if ([onDelete, onUpdate].some((action) => /^set[\s_]+default$/i.test(action ?? ''))) yield 'setDefaultAction';
      } else if (constraint.type === 'unique') yield 'uniqueConstraint';
      else if (constraint.type === 'check') yield 'check';
      else {
        yield 'primaryKeyConstraint';
        yield 'changeKey';
      }
      break;
    }
    case 'dropConstraint':
      if (before.get(operation.collection)?.constraints.get(operation.constraint)?.type === 'primaryKey')
        yield 'changeKey';
      break;
    case 'dropCollection':
    case 'dropIndex':
    case 'raw':
      break;
    default:
      operation satisfies never;
  }
}

function* createFeatures({
  fields,
  primaryKey,
  options,
}: CreateCollection): Generator<readonly [feature: Feature, field?: string]> {
  const key = fields.filter((field) => field.primaryKey);
  if (primaryKey) yield ['primaryKeyConstraint'];
  if (primaryKey?.native !== undefined) yield ['nativeConstraint'];
  if (key.length === 0 && !primaryKey) yield ['tableWithoutKey'];
  if (key.length > 1) yield ['compositeKey'];
  for (const field of fields) {
    for (const feature of fieldFeatures(field)) yield [feature, field.name];
    if (primaryKey && hasWholeFields(primaryKey) && primaryKey.columns.includes(field.name) && isUnlimitedType(field))
      yield ['longKey', field.name];
  }
  if (options?.timestamps) {
    yield ['required', 'createdAt'];
    yield ['default', 'createdAt'];
  }
  if (options?.sqlOptions?.temporary) yield ['temporaryTable'];
  if (options?.sqlOptions?.unlogged) yield ['unloggedTable'];
  if (options?.sqlOptions?.collation !== undefined) yield ['tableCollation'];
  if (options?.sqlOptions?.comment !== undefined) yield ['comment'];
  if (options?.sqlOptions?.native !== undefined) yield ['nativeTable'];
  for (const other of ['mongoOptions', 'dynamoOptions', 'cassandraOptions'] as const)
    if (options?.[other]) yield [other];
}

/** `type` is that of the field once it is changed. */
function* fieldFeatures(field: FieldDefinition, type = fieldType(field.type ?? '')): Generator<Feature> {
  if (type === 'array') yield 'array';
  if ((field.primaryKey || field.unique) && isUnlimitedType(field)) yield 'longKey';
  if (field.autoGenerate) yield isIntegerType(field.type) ? 'generatedInteger' : 'generated';
  if (isRequired(field) && !field.primaryKey) yield 'required';
  if (field.unique) yield 'unique';
  if (typeof field.native === 'string') yield 'nativeType';
  if (typeof field.comment === 'string') yield 'comment';
  if (!hasDefault(field)) return;
  yield 'default';
  if (type === 'array') yield 'arrayDefault';
  if (field.default !== undefined && isExpression(field.default)) yield 'expressionDefault';
}

function* modifyFeatures(
  { field: name, changes, collection: table }: ModifyField,
  collection?: Collection,
): Generator<Feature> {
  const from = collection?.fields.get(name);
  if (!collection || !from) return;
  const to = applyFieldChanges(from, changes, table);
  yield* fieldFeatures(changes as FieldDefinition, to.type);
  const retyped = from.type !== to.type || from.items !== to.items;
  if (retyped) yield 'changeType';
  else if (lengthOf(to) < lengthOf(from)) yield 'shortenField';
  if (from.primaryKey !== to.primaryKey) yield 'changeKey';
  else if (isKeyField(collection, name)) yield 'changeKeyField';
  if (retyped && isIndexed(collection, name)) yield 'changeIndexedField';
  if (isUnlimited(to) && (to.primaryKey || to.unique || isWhollyIndexed(collection, name))) yield 'longKey';
}

/** The greatest length of its values; infinite where none is set. */
const lengthOf = ({ type, length = type === 'string' ? 255 : Number.POSITIVE_INFINITY }: Field): number => length;

const isRequired = ({ required, nullable, primaryKey }: FieldDefinition): boolean =>
  required === true || nullable === false || primaryKey === true;

const hasDefault = ({ default: value }: FieldDefinition): boolean => value !== undefined && value !== null;

/** Of a native type, only the engine knows. */
function isUnlimited({
  type,
  length,
  native,
}: Pick<FieldDefinition, 'length' | 'native'> & Pick<Field, 'type'>): boolean {
  if (native !== undefined) return false;
  return ['text', 'json', 'array', 'blob'].includes(type) || (type === 'binary' && length === undefined);
}

function isUnlimitedType({ type: name, ...parameters }: FieldDefinition): boolean {
  const type = fieldType(name ?? '');
  return type !== undefined && isUnlimited({ ...parameters, type });
}

function isUnlimitedIn(collection: Collection | undefined, names: readonly string[]): boolean {
  return names.some((name) => {
    const field = collection?.fields.get(name);
    return field !== undefined && isUnlimited(field);
  });
}

function isIntegerType(type: string | undefined): boolean {
  const known = type === undefined ? undefined : fieldType(type);
  return known === 'integer' || known === 'bigint' || known === 'smallint';
}

function isKeyField(collection: Collection, name: string): boolean {
  return primaryKeyFields(collection).includes(name) || isConstrained(collection, name, ['primaryKey']);
}

function isIndexed(collection: Collection, name: string): boolean {
  return (
    [...collection.indexes.values()].some(({ columns }) => columns.some((column) => column.name === name)) ||
    isConstrained(collection, name, ['unique', 'foreignKey'])
  );
}

function isWhollyIndexed({ indexes, constraints }: Collection, name: string): boolean {
  return (
    [...indexes.values()].some(
      (one) => one.native === undefined && one.columns.some((column) => column.name === name),
    ) || [...constraints.values()].some((one) => hasWholeFields(one) && one.columns.includes(name))
  );
}

/** Of a key in the engine's own language, only the engine knows. */
const hasWholeFields = ({ type = 'primaryKey', native }: { readonly type?: string; readonly native?: string }) =>
  type !== 'check' && (type !== 'primaryKey' || native === undefined);

function isConstrained({ constraints }: Collection, name: string, types: readonly Constraint['type'][]): boolean {
  return [...constraints.values()].some(({ type, columns }) => types.includes(type) && columns.includes(name));
}
