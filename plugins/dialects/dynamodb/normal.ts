import type { Collection, Field, Index, SchemaModel } from '../../../core/schema/model.ts';
import type { DynamoKey, DynamoOptions } from '../../../core/schema/options.ts';
import { type IndexShape, type Key, ON_DEMAND, shapeOf, type TableShape } from './shape.ts';
import { FOREIGN_TYPES } from './types.ts';

/** What is known of a table beside its shape: by the model, or by our registry. */
export type Known = Pick<Collection, 'name' | 'fields' | 'indexes' | 'options'>;

/** A model in the words in which introspection gives it back. */
export function seen(model: SchemaModel): SchemaModel {
  return new Map([...model].map(([name, collection]) => [name, normal(shapeOf(collection), collection)]));
}

/** One form for the same table, however its options were written: every key said, indexes in order. */
export function normal(shape: TableShape, known: Known): Collection {
  const declared = new Set((known.options.dynamoOptions?.globalSecondaryIndexes ?? []).map(({ name }) => name));
  const isIndex = ({ name, projection }: IndexShape) => projection === 'ALL' && !declared.has(name);
  const globals = shape.globals.filter((index) => !isIndex(index));
  const options: DynamoOptions = {
    partitionKey: keyOption(shape.partition),
    ...(shape.sort && { sortKey: keyOption(shape.sort) }),
    ...(shape.billing !== ON_DEMAND && { billingMode: shape.billing }),
    ...(shape.capacity && { readCapacityUnits: shape.capacity.read, writeCapacityUnits: shape.capacity.write }),
    ...(globals.length > 0 && {
      globalSecondaryIndexes: globals.map(({ name, partition, sort, projection }) => ({
        name,
        partitionKey: keyOption(partition),
        ...(sort && { sortKey: keyOption(sort) }),
        projection,
      })),
    }),
    ...(shape.locals.length > 0 && {
      localSecondaryIndexes: shape.locals.map(({ name, sort, projection }) => ({
        name,
        sortKey: keyOption(sort),
        projection,
      })),
    }),
    ...(shape.stream !== undefined && { streamEnabled: true, streamViewType: shape.stream }),
    ...(shape.ttl !== undefined && { ttlAttribute: shape.ttl }),
  };
  return {
    name: known.name,
    fields: fieldsOf(shape, known),
    indexes: new Map(shape.globals.filter(isIndex).map((index) => [index.name, indexOf(index)])),
    constraints: new Map(),
    options: { dynamoOptions: options },
  };
}

const keyOption = ({ name, type }: Key): DynamoKey => ({ name, type });

function indexOf({ name, partition, sort }: IndexShape): Index {
  return { name, columns: [{ name: partition.name }, ...(sort ? [{ name: sort.name }] : [])] };
}

/** Keys are flagged as what they are; a key of which nobody knows more is a field of the attribute's type. */
function fieldsOf({ partition, sort, globals, locals }: TableShape, known: Known): Map<string, Field> {
  const key = new Set([partition.name, ...(sort ? [sort.name] : [])]);
  const fields = new Map<string, Field>();
  for (const [name, { primaryKey: _, ...field }] of known.fields) fields.set(name, field);
  const indexed = [...globals, ...locals].flatMap((index) => [index.partition, index.sort]);
  for (const attribute of [partition, sort, ...indexed]) {
    if (!attribute) continue;
    const { name, type } = attribute;
    const field = fields.get(name) ?? { name, type: FOREIGN_TYPES[type] };
    fields.set(name, key.has(name) ? { ...field, primaryKey: true, required: true } : field);
  }
  return fields;
}
