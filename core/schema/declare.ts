import { isDeepStrictEqual } from 'node:util';
import { isSvcError, SvcError } from '../errors.ts';
import { checkForeignKey, checkPrimaryKey } from './checks.ts';
import { constraintProblems } from './constraint.ts';
import type { Declaration, DeclaredConstraint, DeclaredField, DeclaredIndex, DeclaredOptions } from './declaration.ts';
import { declaredRenames } from './declared-renames.ts';
import { defineConstraint, defineField, defineIndex, TIMESTAMPS, tableOptions } from './define.ts';
import { exists, fieldOf, unknown } from './lookup.ts';
import type { Collection, Constraint, Field, Index, SchemaModel, TableOptions } from './model.ts';
import { checkTableName, derivedName, type NameSuffix } from './names.ts';
import type { ConstraintDefinition } from './operation.ts';
import { OPTIONS_PROPERTIES } from './options-shape.ts';
import { followConstraint, followIndex, type Naming, naming, type Renames } from './renames.ts';
import { type Path, problemText, type Shape, shapeProblems } from './shape.ts';

export interface Declared {
  readonly model: SchemaModel;
  /** Those of the declaration that are still to be done against the previous model. */
  readonly renames: Renames;
}

const REFERENCE: Shape = {
  properties: { table: 'string', column: 'string', onDelete: 'string', onUpdate: 'string' },
  required: ['table', 'column'],
};
const OPTIONS: Shape = { properties: { ...OPTIONS_PROPERTIES, renamedFrom: 'string' } };
const COLUMN: Shape = {
  either: ['string', { properties: { name: 'string', order: 'string' }, required: ['name'] }],
};
const INDEX: Shape = {
  properties: { name: 'string', columns: { list: COLUMN }, unique: 'boolean' },
  required: ['columns'],
};
const ENTRY: Shape = {
  properties: {
    tables: { map: { map: 'any' } },
    indexes: { map: { list: INDEX } },
    constraints: { map: { list: 'any' } },
    options: { map: OPTIONS },
  },
  required: ['tables'],
};

const SUFFIXES: Readonly<Record<Constraint['type'], NameSuffix>> = {
  foreignKey: 'fkey',
  unique: 'key',
  check: 'check',
  primaryKey: 'pkey',
};

/**
 * One entry of the schema file in normal form. A name that is not given is kept from an index or constraint of the
 * same structure in the previous model, else derived. Refusals carry their place in the entry as `details.path`.
 */
export function declare(declaration: Declaration, previous: SchemaModel = new Map()): Declared {
  const [problem] = shapeProblems(declaration, ENTRY);
  if (problem) throw invalid('The schema file is not valid.', problemText(problem), problem.path);
  const tables = Object.entries(declaration.tables);
  const model = new Map<string, Collection>();
  for (const [name, fields] of tables) {
    const options = own(declaration.options, name) ?? {};
    model.set(name, {
      name,
      fields: at(['tables', name], () => declaredFields(name, fields, options)),
      indexes: new Map(),
      constraints: new Map(),
      options: at(['options', name], () => declaredOptions(name, options)),
    });
  }
  for (const part of ['indexes', 'constraints', 'options'] as const) {
    for (const name of Object.keys(declaration[part] ?? {})) {
      if (!model.has(name)) throw unknown('collection', name, model.keys()).with({ details: { path: [part, name] } });
    }
  }
  const renames = declaredRenames(declaration, model, previous);
  const names = naming(previous, model, renames);
  const origins = new Map([...previous.values()].map((collection) => [names.collection(collection.name), collection]));
  for (const [name, fields] of tables) {
    const supported = { name, fields, declaration, before: origins.get(name), names };
    model.set(name, withConstraints(withIndexes(tableOf(model, name), supported), supported));
  }
  for (const [name, fields] of tables) checkTable(model, tableOf(model, name), fields, declaration);
  return { model, renames };
}

function declaredFields(
  name: string,
  written: Declaration['tables'][string],
  options: DeclaredOptions,
): ReadonlyMap<string, Field> {
  checkTableName(name);
  const fields = new Map<string, Field>();
  for (const [field, definition] of Object.entries(written)) {
    fields.set(
      field,
      at([field], () => declaredField(field, definition, name)),
    );
  }
  for (const { name: field, ...definition } of options.timestamps ? TIMESTAMPS : []) {
    if (fields.has(field)) throw exists('field', field, name).with({ details: { path: [field] } });
    fields.set(field, defineField(field, definition, name));
  }
  return fields;
}

function declaredOptions(name: string, { renamedFrom: _, ...options }: DeclaredOptions): TableOptions {
  for (const key of ['temporary', 'ifNotExists'] as const) {
    if (options.sqlOptions?.[key] === undefined) continue;
    const why = `"${key}" belongs to an operation: the schema file says what tables are there.`;
    throw invalid(`The options of "${name}" are not valid.`, why, ['sqlOptions', key]);
  }
  return tableOptions(options, name);
}

function declaredField(name: string, written: DeclaredField | string, table: string): Field {
  if (typeof written !== 'object' || written === null) return defineField(name, written, table);
  const { references, renamedFrom, ...definition } = written;
  const [problem] = shapeProblems(
    { references, renamedFrom },
    { properties: { references: REFERENCE, renamedFrom: 'string' } },
  );
  if (problem) throw invalid(`The field "${table}.${name}" is not valid.`, problemText(problem), problem.path);
  return defineField(name, definition, table);
}

interface Support {
  readonly name: string;
  readonly fields: Declaration['tables'][string];
  readonly declaration: Declaration;
  /** The table as it was, under its old name. */
  readonly before: Collection | undefined;
  readonly names: Naming;
}

function withIndexes(collection: Collection, { name, declaration, before, names }: Support): Collection {
  const written = own(declaration.indexes, name) ?? [];
  if (written.length === 0) return collection;
  const known = [...(before?.indexes.values() ?? [])].map((index) => followIndex(index, before?.name ?? name, names));
  const indexes = new Map<string, Index>();
  const taken = new Set(written.map((index) => index.name));
  for (const [position, index] of written.entries()) {
    at(['indexes', name, position], () => {
      const defined = defineIndex({ collection: name, ...namedIndex(index, name) });
      for (const column of defined.columns) fieldOf(collection, column.name);
      const kept = index.name === undefined ? sameButName(defined, known, taken) : undefined;
      const final = kept ? { ...defined, name: kept.name } : defined;
      if (indexes.has(final.name)) throw exists('index', final.name, name);
      indexes.set(final.name, final);
      taken.add(final.name);
    });
  }
  return { ...collection, indexes };
}

function namedIndex({ name, columns, unique }: DeclaredIndex, table: string) {
  const full = columns.map((column) => (typeof column === 'string' ? { name: column } : column));
  const derived = derivedName(
    table,
    full.map((column) => column.name),
    'idx',
  );
  return { index: name ?? derived, columns: full, ...(unique !== undefined && { unique }) };
}

interface Written {
  readonly path: Path;
  readonly constraint: DeclaredConstraint;
}

/** Those written out, and those of fields that reference another table. */
function writtenConstraints(table: string, fields: Support['fields'], declaration: Declaration): Written[] {
  const explicit = (own(declaration.constraints, table) ?? []).map((constraint, position): Written => {
    const path = ['constraints', table, position];
    const [problem] = constraintProblems(constraint);
    if (problem)
      throw invalid(`A constraint of "${table}" is not valid.`, problemText(problem), [...path, ...problem.path]);
    return { path, constraint };
  });
  const implied = Object.entries(fields).flatMap(([field, definition]): Written[] => {
    if (typeof definition === 'string' || !definition.references) return [];
    const { column, ...references } = definition.references;
    return [
      {
        path: ['tables', table, field, 'references'],
        // Actions are checked with the constraint.
        constraint: {
          type: 'foreignKey',
          columns: [field],
          references: { ...references, columns: [column] },
        } as DeclaredConstraint,
      },
    ];
  });
  return [...explicit, ...implied];
}

function withConstraints(collection: Collection, { name, fields, declaration, before, names }: Support): Collection {
  const written = writtenConstraints(name, fields, declaration);
  if (written.length === 0) return collection;
  const known = [...(before?.constraints.values() ?? [])].map((item) =>
    followConstraint(item, before?.name ?? name, names),
  );
  const constraints = new Map<string, Constraint>();
  const taken = new Set(written.map(({ constraint }) => constraint.name));
  for (const { path, constraint } of written) {
    at(path, () => {
      const defined = namedConstraint(constraint, collection);
      for (const column of defined.columns) fieldOf(collection, column);
      const kept = constraint.name === undefined ? sameButName(defined, known, taken) : undefined;
      const final = kept ? { ...defined, name: kept.name } : defined;
      if (constraints.has(final.name)) throw exists('constraint', final.name, name);
      constraints.set(final.name, final);
      taken.add(final.name);
    });
  }
  return { ...collection, constraints, fields: withRequiredKeys(collection.fields, constraints) };
}

function namedConstraint(constraint: DeclaredConstraint, collection: Collection): Constraint {
  if (constraint.name !== undefined) {
    return defineConstraint(constraint as ConstraintDefinition, collection.name, collection.fields.keys());
  }
  const unnamed = { ...constraint, name: 'unnamed' } as ConstraintDefinition;
  const defined = defineConstraint(unnamed, collection.name, collection.fields.keys());
  const columns = defined.type === 'primaryKey' ? [] : defined.columns;
  return { ...defined, name: derivedName(collection.name, columns, SUFFIXES[defined.type]) };
}

/** The one of the same structure, under the same name if there is one, else under a name nobody else has. */
function sameButName<T extends { readonly name: string }>(
  wanted: T,
  known: readonly (T | undefined)[],
  taken: ReadonlySet<string | undefined>,
): T | undefined {
  const same = known.filter((item) => item !== undefined && isDeepStrictEqual({ ...item, name: wanted.name }, wanted));
  return same.find((item) => item?.name === wanted.name) ?? same.find((item) => !taken.has(item?.name));
}

/** Fields of a primary key constraint are required, as those that say `primaryKey: true` are. */
function withRequiredKeys(
  fields: ReadonlyMap<string, Field>,
  constraints: ReadonlyMap<string, Constraint>,
): ReadonlyMap<string, Field> {
  const keys = [...constraints.values()].flatMap(({ type, columns }) => (type === 'primaryKey' ? columns : []));
  if (keys.length === 0) return fields;
  return new Map(
    [...fields].map(([name, field]) => [name, keys.includes(name) ? { ...field, required: true } : field]),
  );
}

function checkTable(
  model: SchemaModel,
  collection: Collection,
  fields: Support['fields'],
  declaration: Declaration,
): void {
  const { name, constraints } = collection;
  const keyed = [...collection.fields.values()].some((field) => field.primaryKey);
  if (!keyed && ![...constraints.values()].some(({ type }) => type === 'primaryKey')) {
    throw new SvcError('schema_invalid', `The table "${name}" has no primary key.`, {
      next: ['Add "primaryKey": true to a field, or a constraint of type primaryKey.'],
      details: { path: ['tables', name] },
    });
  }
  if (constraints.size === 0) return;
  const paths = writtenConstraints(name, fields, declaration).map(({ path }) => path);
  // Constraints stand in the order they were written.
  for (const [position, constraint] of [...constraints.values()].entries()) {
    at(paths[position] ?? [], () => {
      if (constraint.type === 'foreignKey') checkForeignKey(model, collection, constraint);
      if (constraint.type === 'primaryKey') checkPrimaryKey(collection);
    });
  }
}

function tableOf(model: ReadonlyMap<string, Collection>, name: string): Collection {
  const collection = model.get(name);
  if (collection) return collection;
  throw unknown('collection', name, model.keys());
}

/** A table may be called `constructor`: what an object inherits does not count. */
function own<T>(map: { readonly [name: string]: T } | undefined, name: string): T | undefined {
  return map && Object.hasOwn(map, name) ? map[name] : undefined;
}

function invalid(message: string, why: string, path: Path): SvcError {
  return new SvcError('schema_invalid', message, { why, details: { path } });
}

/** Refusals inside get the place they happened at. */
function at<T>(path: Path, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!isSvcError(error)) throw error;
    const inner = Array.isArray(error.details.path) ? error.details.path : [];
    // The `references` of a field are those of its constraint.
    const rest = inner[0] === 'references' && path.at(-1) === 'references' ? inner.slice(1) : inner;
    throw error.with({ details: { path: [...path, ...rest] } });
  }
}
