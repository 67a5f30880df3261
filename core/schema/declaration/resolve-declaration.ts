import { problemText, type Shape, shapeProblems } from '../../validate-shape.ts';
import { defineField, TIMESTAMP_FIELDS, tableOptions } from '../define.ts';
import { FIELD_PROPERTIES } from '../define-field.ts';
import { alreadyExistsError, collectionOf, unknownError } from '../find-or-throw.ts';
import { assertForeignKey, assertPrimaryKey } from '../keys.ts';
import type { Collection, Field, SchemaModel } from '../model.ts';
import { assertFieldName, assertTableName, type NameLimit, PORTABLE_NAME_LIMIT } from '../names.ts';
import type { FieldDefinition } from '../operation.ts';
import { INDEX_COLUMN } from '../operation-problems.ts';
import { INDEX_OPTIONS_PROPERTIES, OPTIONS_PROPERTIES, type TableOptions } from '../options.ts';
import { mapNames } from '../rename/renames.ts';
import { NO_DECISIONS, type RenameDecisions } from '../rename/undecided.ts';
import {
  type Declaration,
  type DeclaredField,
  type DeclaredOptions,
  ownProperty,
  schemaInvalid,
  withErrorPath,
} from './declaration.ts';
import { type DeclaredTable, declaredConstraints, withConstraints, withIndexes } from './indexes-and-constraints.ts';
import { type DeclaredRenames, declaredRenames } from './resolve-renames.ts';

export interface ResolvedDeclaration extends DeclaredRenames {
  readonly model: SchemaModel;
}

export const DECLARED_OPTIONS: Shape = { properties: { ...OPTIONS_PROPERTIES, renamedFrom: 'string' } };
export const DECLARED_INDEX: Shape = {
  properties: {
    name: 'string',
    columns: { list: { either: ['string', INDEX_COLUMN] } },
    unique: 'boolean',
    ...INDEX_OPTIONS_PROPERTIES,
  },
  required: ['columns'],
};
const ENTRY: Shape = {
  properties: {
    tables: { map: { map: 'any' } },
    indexes: { map: { list: DECLARED_INDEX } },
    constraints: { map: { list: 'any' } },
    options: { map: DECLARED_OPTIONS },
  },
  required: ['tables'],
};

/**
 * Converts an entry of the schema file to a model. An index or constraint without a name gets the name of an equal one
 * in the previous model, otherwise a derived name within `limit`. Errors have their path in the entry as `details.path`.
 */
export function resolveDeclaration(
  declaration: Declaration,
  previous: SchemaModel = new Map(),
  decisions: RenameDecisions = NO_DECISIONS,
  limit: NameLimit = PORTABLE_NAME_LIMIT,
): ResolvedDeclaration {
  const [problem] = shapeProblems(declaration, ENTRY);
  if (problem) throw schemaInvalid('The schema file is not valid.', problemText(problem), problem.path);
  const tables = Object.entries(declaration.tables);
  const model = new Map<string, Collection>();
  for (const [name, fields] of tables) {
    const options = ownProperty(declaration.options, name) ?? {};
    model.set(name, {
      name,
      fields: withErrorPath(['tables', name], () => declaredFields(name, fields, options)),
      indexes: new Map(),
      constraints: new Map(),
      options: withErrorPath(['options', name], () => declaredOptions(name, options)),
    });
  }
  for (const part of ['indexes', 'constraints', 'options'] as const) {
    for (const name of Object.keys(declaration[part] ?? {})) {
      if (!model.has(name))
        throw unknownError('collection', name, model.keys()).with({ details: { path: [part, name] } });
    }
  }
  const { renames, ambiguous } = declaredRenames(declaration, model, previous, decisions);
  const names = mapNames(previous, model, decisions.expand ? { ...renames, fields: new Map() } : renames);
  const origins = new Map([...previous.values()].map((collection) => [names.collection(collection.name), collection]));
  const owners = new Map(
    [...previous.values()].flatMap(({ name, indexes, constraints }) =>
      [...indexes.keys(), ...constraints.keys()].map((taken) => [taken, name] as const),
    ),
  );
  for (const [name, fields] of tables) {
    const declared = { name, fields, declaration, before: origins.get(name), names, owners, limit };
    model.set(name, withConstraints(withIndexes(collectionOf(model, name), declared), declared));
  }
  for (const [name, fields] of tables) assertTable(model, collectionOf(model, name), fields, declaration);
  return { model, renames, ambiguous };
}

function assertTable(
  model: SchemaModel,
  collection: Collection,
  fields: DeclaredTable['fields'],
  declaration: Declaration,
): void {
  const { name, constraints } = collection;
  if (constraints.size === 0) return;
  const paths = declaredConstraints(name, fields, declaration).map(({ path }) => path);
  // Constraints are in declaration order.
  for (const [position, constraint] of [...constraints.values()].entries()) {
    withErrorPath(paths[position] ?? [], () => {
      if (constraint.type === 'foreignKey') assertForeignKey(model, collection, constraint);
      if (constraint.type === 'primaryKey') assertPrimaryKey(collection);
    });
  }
}

/** Field properties that exist only in the schema file. */
const DECLARED_PROPERTIES: Readonly<Record<Exclude<keyof DeclaredField, keyof FieldDefinition>, Shape>> = {
  references: {
    properties: { table: 'string', column: 'string', onDelete: 'string', onUpdate: 'string' },
    required: ['table', 'column'],
  },
  renamedFrom: 'string',
};

/** A field of the schema file. */
export const DECLARED_FIELD_SHAPE = {
  properties: { ...FIELD_PROPERTIES, ...DECLARED_PROPERTIES },
  required: ['type'],
} as const;

function declaredFields(
  name: string,
  input: Declaration['tables'][string],
  options: DeclaredOptions,
): ReadonlyMap<string, Field> {
  assertTableName(name);
  const fields = new Map<string, Field>();
  for (const [field, definition] of Object.entries(input)) {
    fields.set(
      field,
      withErrorPath([field], () => declaredField(field, definition, name)),
    );
  }
  for (const { name: field, ...definition } of options.timestamps ? TIMESTAMP_FIELDS : []) {
    if (fields.has(field)) throw alreadyExistsError('field', field, name).with({ details: { path: [field] } });
    fields.set(field, defineField(field, definition, name));
  }
  return fields;
}

function declaredOptions(name: string, { renamedFrom: _, ...options }: DeclaredOptions): TableOptions {
  for (const key of ['temporary', 'ifNotExists'] as const) {
    if (options.sqlOptions?.[key] === undefined) continue;
    const why = `"${key}" applies to operations only. The schema file lists the tables that exist.`;
    throw schemaInvalid(`The options of "${name}" are not valid.`, why, ['sqlOptions', key]);
  }
  return tableOptions(options);
}

function declaredField(name: string, input: DeclaredField | string, table: string): Field {
  assertFieldName(name);
  if (typeof input !== 'object' || input === null) return defineField(name, input, table);
  const { references, renamedFrom } = input;
  const [problem] = shapeProblems({ references, renamedFrom }, { properties: DECLARED_PROPERTIES });
  if (problem) throw schemaInvalid(`The field "${table}.${name}" is not valid.`, problemText(problem), problem.path);
  return defineField(name, input, table, DECLARED_FIELD_SHAPE);
}
