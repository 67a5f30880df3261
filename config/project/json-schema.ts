import type { Json } from '../../core/json.ts';
import { TAG } from '../../core/migration/tag.ts';
import { MIGRATION_PROPERTIES } from '../../core/migration/validate-migration.ts';
import { CONSTRAINT_SHAPES } from '../../core/schema/constraint.ts';
import type { Declaration } from '../../core/schema/declaration/declaration.ts';
import {
  DECLARED_FIELD_SHAPE,
  DECLARED_INDEX,
  DECLARED_OPTIONS,
} from '../../core/schema/declaration/resolve-declaration.ts';
import { FIELD_TYPES, REFERENTIAL_ACTIONS } from '../../core/schema/model.ts';
import { CONSTRAINT, MAKES, NAMED_FIELD, OPERATION_SHAPES } from '../../core/schema/operation-problems.ts';
import { DYNAMO_KEY } from '../../core/schema/options.ts';
import type { ObjectShape, Shape } from '../../core/validate-shape.ts';

type JsonSchema = { readonly [keyword: string]: Json };

/** The JSON Schema of the schema file and of migration files, for editors. */
export function jsonSchema(): JsonSchema {
  const { name, ...properties } = objectSchema(NAMED_FIELD).properties;
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'A schema file (svc/database/schema.json) or a migration file (svc/database/migrations/<db>/<tag>.json)',
    if: { type: 'array' },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { type: 'array', items: reference('entry') },
    else: reference('migration'),
    definitions: {
      type: {
        type: 'string',
        anyOf: [{ enum: FIELD_TYPES }, { pattern: anyCase(FIELD_TYPES) }],
        description: 'One of the field types, in any letter case.',
      },
      dynamoKey: toJsonSchema(DYNAMO_KEY),
      namedField: { ...objectSchema(NAMED_FIELD), properties: { name: { ...name, minLength: 1 }, ...properties } },
      constraint: variants(CONSTRAINT_SHAPES, ['name']),
      operation: variants(OPERATION_SHAPES),
      operations: { type: 'array', items: reference('operation') },
      migration: migrationSchema(),
      field: {
        anyOf: [reference('type'), objectSchema(DECLARED_FIELD_SHAPE)],
      },
      entry: entrySchema(),
    },
  };
}

function migrationSchema(): JsonSchema {
  const { properties, ...rest } = objectSchema({ properties: MIGRATION_PROPERTIES, required: ['tag', 'up', 'down'] });
  const operations = reference('operations');
  return { ...rest, properties: { ...properties, type: { type: 'string' }, up: operations, down: operations } };
}

function entrySchema(): JsonSchema {
  const byName = (additionalProperties: JsonSchema) => ({ type: 'object', additionalProperties });
  const parts: Readonly<Record<keyof Declaration, JsonSchema>> = {
    tables: byName(byName(reference('field'))),
    indexes: byName({ type: 'array', items: toJsonSchema(DECLARED_INDEX) }),
    constraints: byName({ type: 'array', items: variants(CONSTRAINT_SHAPES) }),
    options: byName(toJsonSchema(DECLARED_OPTIONS)),
  };
  return {
    type: 'object',
    properties: { db: { type: 'string', description: 'A database tag of svc.config.' }, ...parts },
    additionalProperties: false,
    required: ['db', 'tables'],
  };
}

const NOT_EMPTY = { minItems: 1 };
const POSITIVE = { type: 'integer', minimum: 1 };
const NOT_NEGATIVE = { type: 'integer', minimum: 0 };
const ACTION = { enum: REFERENTIAL_ACTIONS };

/** Descriptions and rules that a shape cannot express, by property name. */
const DETAILS: Readonly<Record<string, JsonSchema>> = {
  type: reference('type'),
  autoGenerate: { description: 'Identity or AUTO_INCREMENT for integers, a UUID default for other types.' },
  length: { ...POSITIVE, description: 'Characters of a string, bytes of a binary.' },
  nullable: { description: '`nullable: false` means `required: true`.' },
  default: {
    description:
      'A value of the type; "now" for dates and times; { "$expression": "…" } in the language of the engine.',
  },
  precision: POSITIVE,
  scale: NOT_NEGATIVE,
  enumValues: { ...NOT_EMPTY, uniqueItems: true },
  items: { ...reference('type'), description: 'Element type of an array; default string.' },
  native: { minLength: 1, description: 'In the language of the engine, where svc has no words for it.' },
  comment: { description: 'SQL: the comment in the catalog.' },
  renamedFrom: { description: 'The previous name.' },
  columns: NOT_EMPTY,
  order: { pattern: anyCase(['asc', 'desc']) },
  onDelete: ACTION,
  onUpdate: ACTION,
  expression: { minLength: 1 },
  timestamps: { description: 'Adds createdAt and updatedAt: timestamp, required, default now.' },
  unlogged: { description: 'PostgreSQL only.' },
  collation: { description: 'MySQL and MariaDB only: of the texts of the table; default the one of the database.' },
  size: POSITIVE,
  max: POSITIVE,
  readCapacityUnits: POSITIVE,
  writeCapacityUnits: POSITIVE,
  partitionKey: NOT_EMPTY,
  clusteringColumns: NOT_EMPTY,
  defaultTTL: NOT_NEGATIVE,
  compaction: { properties: { class: { type: 'string' } }, required: ['class'] },
  expireAfterSeconds: NOT_NEGATIVE,
  tag: { pattern: TAG.source, description: 'The file name without its extension.' },
  irreversible: {
    description: 'Why the migration cannot be rolled back; `down` is then empty, unless `irreversibleOn` is set.',
  },
  irreversibleOn: { description: 'The dialects on which `irreversible` applies; without it, on all.' },
  makes: { description: 'What the statement makes, as operations on the model. The catalog is compared with it.' },
  lossy: { description: 'Data that `up` destroys or `down` cannot restore, one sentence each.' },
  allow: { description: 'What `up` may do without a flag: copy a whole table, destroy data.' },
  online: {
    description:
      'Whether tables are changed by statements during which they can be read and written; without it, those with more than 10,000 rows are. PostgreSQL.',
  },
};

const DEFINITIONS: ReadonlyMap<Shape, string> = new Map<Shape, string>([
  [NAMED_FIELD, 'namedField'],
  [CONSTRAINT, 'constraint'],
  [MAKES, 'operations'],
  [DYNAMO_KEY, 'dynamoKey'],
]);

/** A union of object types, discriminated by their property `type`. */
function variants(shapes: Readonly<Record<string, ObjectShape>>, alsoRequired: readonly string[] = []): JsonSchema {
  return {
    anyOf: Object.entries(shapes).map(([type, { properties, required = [] }]) => {
      const schema = objectSchema({ properties, required: [...alsoRequired, ...required] });
      return { ...schema, properties: { ...schema.properties, type: { const: type } } };
    }),
  };
}

function objectSchema({ properties, required = [] }: ObjectShape) {
  return {
    type: 'object',
    properties: Object.fromEntries(Object.entries(properties).map(([name, shape]) => [name, property(name, shape)])),
    additionalProperties: false,
    ...(required.length > 0 && { required }),
  };
}

function property(name: string, shape: Shape): JsonSchema {
  if (typeof shape === 'object' && 'nullable' in shape)
    return { anyOf: [property(name, shape.nullable), { type: 'null' }] };
  const schema = inline(shape);
  // Do not override a shape that is more specific: the `order` of some lists and the `type` of a key are enumerations.
  return 'enum' in schema || '$ref' in schema ? schema : { ...schema, ...DETAILS[name] };
}

function inline(shape: Shape): JsonSchema {
  const definition = DEFINITIONS.get(shape);
  return definition === undefined ? toJsonSchema(shape) : reference(definition);
}

function toJsonSchema(shape: Shape): JsonSchema {
  if (shape === 'json' || shape === 'any') return {};
  if (typeof shape === 'string') return { type: shape };
  if ('oneOf' in shape) return { enum: shape.oneOf };
  if ('list' in shape) return { type: 'array', ...(shape.list !== 'any' && { items: inline(shape.list) }) };
  if ('map' in shape) {
    const isOpen = shape.map === 'json' || shape.map === 'any';
    return { type: 'object', ...(!isOpen && { additionalProperties: inline(shape.map) }) };
  }
  if ('either' in shape) return { anyOf: shape.either.map(inline) };
  if ('nullable' in shape) return { anyOf: [inline(shape.nullable), { type: 'null' }] };
  return objectSchema(shape);
}

function reference(definition: string): JsonSchema {
  return { $ref: `#/definitions/${definition}` };
}

/** A pattern for words in any letter case: JSON Schema has no flag for it. */
function anyCase(words: readonly string[]): string {
  const letter = (one: string) => `[${one.toUpperCase()}${one.toLowerCase()}]`;
  return `^(${words.map((word) => [...word].map(letter).join('')).join('|')})$`;
}
