import { SvcError } from '../errors.ts';
import { checkForeignKey, checkPrimaryKey } from './checks.ts';
import type { Declaration } from './declaration.ts';
import { declaredFields, declaredOptions } from './declared-fields.ts';
import { at, invalid, own } from './declared-place.ts';
import { type DeclaredRenames, declaredRenames } from './declared-renames.ts';
import { type Support, withConstraints, withIndexes, writtenConstraints } from './declared-support.ts';
import { unknown } from './lookup.ts';
import type { Collection, SchemaModel } from './model.ts';
import { INDEX_OPTIONS_PROPERTIES, OPTIONS_PROPERTIES } from './options-shape.ts';
import { type Decisions, UNDECIDED } from './rename.ts';
import { naming } from './renames.ts';
import { problemText, type Shape, shapeProblems } from './shape.ts';

export interface Declared extends DeclaredRenames {
  readonly model: SchemaModel;
}

const OPTIONS: Shape = { properties: { ...OPTIONS_PROPERTIES, renamedFrom: 'string' } };
const COLUMN: Shape = {
  either: ['string', { properties: { name: 'string', order: 'string' }, required: ['name'] }],
};
const INDEX: Shape = {
  properties: { name: 'string', columns: { list: COLUMN }, unique: 'boolean', ...INDEX_OPTIONS_PROPERTIES },
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

/**
 * One entry of the schema file in normal form. A name that is not given is kept from an index or constraint of the
 * same structure in the previous model, else derived. Refusals carry their place in the entry as `details.path`.
 */
export function declare(
  declaration: Declaration,
  previous: SchemaModel = new Map(),
  decisions: Decisions = UNDECIDED,
): Declared {
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
  const { renames, doubtful } = declaredRenames(declaration, model, previous, decisions);
  const names = naming(previous, model, renames);
  const origins = new Map([...previous.values()].map((collection) => [names.collection(collection.name), collection]));
  const owners = new Map(
    [...previous.values()].flatMap(({ name, indexes, constraints }) =>
      [...indexes.keys(), ...constraints.keys()].map((taken) => [taken, name] as const),
    ),
  );
  for (const [name, fields] of tables) {
    const supported = { name, fields, declaration, before: origins.get(name), names, owners };
    model.set(name, withConstraints(withIndexes(tableOf(model, name), supported), supported));
  }
  for (const [name, fields] of tables) checkTable(model, tableOf(model, name), fields, declaration);
  return { model, renames, doubtful };
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
