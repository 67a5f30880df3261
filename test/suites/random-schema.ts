import { isDeepStrictEqual } from 'node:util';
import type { Dialect } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { apply } from '../../core/schema/apply.ts';
import { areComparable, referencesTo, uniqueKeys } from '../../core/schema/keys.ts';
import type { Collection, SchemaModel } from '../../core/schema/model.ts';
import type { ConstraintDefinition, FieldDefinition, Operation, OperationType } from '../../core/schema/operation.ts';
import type { Renames } from '../../core/schema/rename/renames.ts';

/** Names that look like code, patterns or properties of objects. */
export const HOSTILE_NAMES = [
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'toString',
  'sélect 😀',
  'say "hi"',
  "it's",
  '`tick`',
  '$1',
  'a.b',
  'svc_rename_1',
  ' ',
] as const;

export const PLAIN_NAMES = ['a', 'b', 'c', 'd', 'users', 'orders'] as const;

export interface SchemaChoices {
  readonly names: readonly string[];
  /** The definitions to choose from; by default every type. */
  readonly fields: readonly FieldDefinition[];
  /** Whether to generate foreign keys, checks and constraints. */
  readonly sql: boolean;
  /** Returns a check expression for a field, whose name is not quoted yet. */
  readonly check: (field: string) => string;
  /** Kinds of moves; a repeated kind is more likely. */
  readonly kinds: readonly MoveKind[];
}

export const FIELDS: readonly FieldDefinition[] = [
  { type: 'integer' },
  { type: 'integer', required: true },
  { type: 'integer', primaryKey: true },
  { type: 'Integer', autoGenerate: true, primaryKey: true },
  { type: 'integer', unique: true, nullable: false },
  { type: 'bigint', default: '9007199254740993' },
  { type: 'bigint', unique: true },
  { type: 'smallint', default: -5 },
  { type: 'float', default: 1.5 },
  { type: 'double', required: true, default: 0 },
  { type: 'decimal', precision: 10, scale: 2, default: '1.50' },
  { type: 'decimal', precision: 12 },
  { type: 'string' },
  { type: 'string', length: 40, default: "it's" },
  { type: 'String', length: 20, unique: true },
  { type: 'text', required: true },
  { type: 'boolean', default: false },
  { type: 'date', default: 'now' },
  { type: 'time', default: '10:00:00' },
  { type: 'datetime', default: 'now' },
  { type: 'timestamp', required: true, default: 'now' },
  { type: 'json', default: { a: [1, null, 'x'] } },
  { type: 'uuid', autoGenerate: true, primaryKey: true },
  { type: 'uuid' },
  { type: 'enum', enumValues: ['x', 'y'], default: 'x' },
  { type: 'enum', enumValues: ['y', 'x', "z'"], required: true },
  { type: 'array' },
  { type: 'array', items: 'integer', default: [1, 2] },
  { type: 'binary', length: 16 },
  { type: 'blob' },
];

/** The moves that consist of a single operation, as often as they are likely. */
const SINGLE = {
  createCollection: [
    'createCollection',
    'createCollection',
    'createCollection',
    'createCollection',
    'createCollection',
  ],
  dropCollection: ['dropCollection'],
  renameCollection: ['renameCollection'],
  addField: ['addField', 'addField'],
  dropField: ['dropField'],
  renameField: ['renameField'],
  modifyField: ['modifyField', 'modifyField', 'retypeField'],
  createIndex: ['createIndex'],
  dropIndex: ['dropIndex'],
  addConstraint: ['unique', 'primaryKey', 'check', 'foreignKey', 'foreignKey', 'foreignKey'],
  dropConstraint: ['dropConstraint'],
  raw: [],
  createObject: [],
  replaceObject: [],
  dropObject: [],
} as const satisfies Readonly<Record<OperationType, readonly string[]>>;

type MoveKind = (typeof SINGLE)[OperationType][number] | 'rekey' | 'swapFields' | 'swapCollections';

const KINDS: readonly MoveKind[] = [...Object.values(SINGLE).flat(), 'rekey', 'rekey', 'swapFields', 'swapCollections'];

export const CHOICES: SchemaChoices = {
  names: [...PLAIN_NAMES, ...HOSTILE_NAMES],
  fields: FIELDS,
  sql: true,
  check: (field) => `"${field.replaceAll('"', '""')}" IS NOT NULL`,
  kinds: KINDS,
};

/** Of an engine where what is before a dot in the name of a table is a schema, names without one. */
export const namesFor = ({ capabilities }: Pick<Dialect, 'capabilities'>): readonly string[] =>
  CHOICES.names.filter((name) => !capabilities.names.schemas || !name.includes('.'));

/** A change encoded as numbers that are valid for every model, which makes shrinking simple. */
export interface SchemaMove {
  readonly kind: MoveKind;
  readonly numbers: readonly number[];
}

/** Returns up to `most` moves, the same for the same seed on every machine. */
export function randomMoves(most: number, seed: number, choices: SchemaChoices = CHOICES): SchemaMove[] {
  const random = generator(seed);
  const numberBelow = (limit: number) => Math.floor(random() * limit);
  return Array.from({ length: numberBelow(most + 1) }, () => ({
    kind: choices.kinds[numberBelow(choices.kinds.length)] ?? 'createCollection',
    numbers: Array.from({ length: 8 }, () => numberBelow(998)),
  }));
}

/** A generator of numbers from 0 to 1: mulberry32. */
function generator(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface AppliedMoves {
  readonly from: SchemaModel;
  readonly model: SchemaModel;
  /** The legal operations, in order. */
  readonly operations: readonly Operation[];
  /** The tables and fields that existed at the start and still exist under another name. */
  readonly renames: Renames;
}

/** Applies the legal moves and ignores the others. */
export function applyMoves(
  moves: readonly SchemaMove[],
  from: SchemaModel = new Map(),
  choices: SchemaChoices = CHOICES,
): AppliedMoves {
  const origins = new Origins(from);
  const operations: Operation[] = [];
  let model = from;
  for (const move of moves) {
    for (const operation of decodeMove(move, model, choices)) {
      try {
        model = apply(model, operation);
      } catch (error) {
        if (!isSvcError(error)) throw error;
        break;
      }
      operations.push(operation);
      origins.note(operation);
    }
  }
  return { from, model, operations, renames: origins.renames() };
}

function decodeMove({ kind, numbers }: SchemaMove, model: SchemaModel, choices: SchemaChoices): Operation[] {
  let next = 0;
  const number = () => numbers[next++ % numbers.length] ?? 0;
  const pick = <T>(moves: readonly T[]): T | undefined => moves[number() % Math.max(1, moves.length)];
  const name = () => pick(choices.names) ?? 'a';
  if (kind === 'createCollection') return createTableOperations(name(), number, choices);
  const collection = pick([...model.values()]);
  if (!collection) return [];
  const field = pick([...collection.fields.keys()]) ?? 'missing';
  const at = { collection: collection.name };
  switch (kind) {
    case 'dropCollection':
      return [{ type: kind, ...at, cascade: number() % 2 === 0 }];
    case 'renameCollection':
      return [{ type: kind, ...at, to: name() }];
    case 'addField':
      return [{ type: kind, ...at, field: { name: name(), ...(pick(choices.fields) ?? { type: 'integer' }) } }];
    case 'dropField':
      return [{ type: kind, ...at, field }];
    case 'renameField':
      return [{ type: kind, ...at, from: field, to: name() }];
    case 'modifyField': {
      const [key, value] = pick(
        Object.entries(pick(choices.fields) ?? {}).filter(([property]) => property !== 'type'),
      ) ?? ['required', true];
      return [
        {
          type: kind,
          ...at,
          field,
          changes: { [key]: number() % 3 === 0 && typeof value === 'boolean' ? !value : value },
        },
      ];
    }
    case 'retypeField':
      return [{ type: 'modifyField', ...at, field, changes: { default: null, ...pick(choices.fields) } }];
    case 'createIndex': {
      const columns = [...new Set([field, ...(number() % 2 ? [pick([...collection.fields.keys()]) ?? field] : [])])];
      return [
        {
          type: kind,
          ...at,
          index: `i ${name()}`,
          columns: columns.map((column) => ({ name: column, order: number() % 2 ? 'DESC' : 'asc' })),
          unique: number() % 2 === 0,
        },
      ];
    }
    case 'dropIndex':
      return [{ type: kind, ...at, index: pick([...collection.indexes.keys()]) ?? 'missing' }];
    case 'unique':
    case 'primaryKey': {
      const columns = [...new Set([field, ...(number() % 2 ? [pick([...collection.fields.keys()]) ?? field] : [])])];
      return [{ type: 'addConstraint', ...at, constraint: { name: `${kind} ${name()}`, type: kind, columns } }];
    }
    case 'check':
      if (!choices.sql || collection.fields.size === 0) return [];
      return [
        {
          type: 'addConstraint',
          ...at,
          constraint: { name: `check ${name()}`, type: kind, expression: choices.check(field) },
        },
      ];
    case 'foreignKey': {
      const target = pick([...model.values()]) ?? collection;
      const constraint = choices.sql ? foreignKey(`fk ${name()}`, collection, target, number) : undefined;
      return constraint ? [{ type: 'addConstraint', ...at, constraint }] : [];
    }
    case 'dropConstraint':
      return [{ type: kind, ...at, constraint: pick([...collection.constraints.keys()]) ?? 'missing' }];
    case 'rekey':
      return choices.sql ? replaceKeyOperations(model, number, `key ${name()}`) : [];
    case 'swapFields': {
      const other = pick([...collection.fields.keys()]) ?? field;
      const rename = (from: string, to: string): Operation => ({ type: 'renameField', ...at, from, to });
      return [rename(field, 'aside'), rename(other, field), rename('aside', other)];
    }
    case 'swapCollections': {
      const other = pick([...model.keys()]) ?? collection.name;
      const rename = (from: string, to: string): Operation => ({ type: 'renameCollection', collection: from, to });
      return [rename(collection.name, 'aside'), rename(other, collection.name), rename('aside', other)];
    }
  }
}

function createTableOperations(name: string, number: () => number, choices: SchemaChoices): Operation[] {
  const keys = choices.fields.filter((field) => field.primaryKey);
  const key = keys[number() % Math.max(1, keys.length)] ?? { type: 'integer', primaryKey: true };
  const fields = new Map<string, FieldDefinition>([['id', key]]);
  for (let count = number() % 5; count > 0; count--) {
    fields.set(
      choices.names[number() % choices.names.length] ?? 'a',
      choices.fields[number() % choices.fields.length] ?? { type: 'integer' },
    );
  }
  const definitions = [...fields].map(([field, definition]) => ({ name: field, ...definition }));
  const options = { timestamps: number() % 5 === 0 };
  if (number() % 4 > 0 || !choices.sql) return [{ type: 'createCollection', name, fields: definitions, options }];
  // The same key as a constraint.
  const columns = definitions.filter((field) => field.primaryKey).map((field) => field.name);
  const loose = definitions.map(({ primaryKey, ...field }) => ({ ...field, ...(primaryKey && { required: true }) }));
  return [
    { type: 'createCollection', name, fields: loose, options },
    { type: 'addConstraint', collection: name, constraint: { name: 'the key', type: 'primaryKey', columns } },
  ];
}

/** Replaces the key that a foreign key references with another key over the same columns. */
function replaceKeyOperations(model: SchemaModel, number: () => number, name: string): Operation[] {
  const references = [...model.keys()].flatMap((table) => referencesTo(model, table));
  const reference = references[number() % Math.max(1, references.length)];
  if (!reference) return [];
  const { collection, foreignKey } = reference;
  const { table, columns } = foreignKey.references;
  const target = model.get(table);
  const old = [...(target?.constraints.values() ?? [])].find(
    ({ type, columns: own }) => type === 'unique' && isDeepStrictEqual(own, columns),
  );
  const [single = ''] = columns;
  return [
    ...referencesTo(model, table).map(
      (other): Operation => ({
        type: 'dropConstraint',
        collection: other.collection,
        constraint: other.foreignKey.name,
      }),
    ),
    { type: 'addConstraint', collection: table, constraint: { name, type: 'unique', columns } },
    ...(old ? [{ type: 'dropConstraint', collection: table, constraint: old.name } as const] : []),
    ...(target?.fields.get(single)?.unique && columns.length === 1
      ? [{ type: 'modifyField', collection: table, field: single, changes: { unique: false } } as const]
      : []),
    { type: 'addConstraint', collection, constraint: foreignKey },
  ];
}

/** A foreign key to some key of the target, from fields of matching types. */
function foreignKey(
  name: string,
  collection: Collection,
  target: Collection,
  number: () => number,
): ConstraintDefinition | undefined {
  const keys = uniqueKeys(target);
  const key = keys[number() % Math.max(1, keys.length)];
  if (!key) return undefined;
  const columns: string[] = [];
  for (const column of key.columns) {
    const wanted = target.fields.get(column);
    const fitting = [...collection.fields.values()].filter(
      (field) => wanted && field.type === wanted.type && areComparable(field, wanted) && !columns.includes(field.name),
    );
    columns.push(fitting[number() % Math.max(1, fitting.length)]?.name ?? 'missing');
  }
  const onDelete = ([undefined, 'CASCADE', 'SET NULL', 'NO ACTION', 'RESTRICT'] as const)[number() % 5];
  return {
    name,
    type: 'foreignKey',
    columns,
    references: { table: target.name, columns: [...key.columns], ...(onDelete && { onDelete }) },
  };
}

/** Tracks the original names of the tables and fields of a model across operations. */
class Origins {
  readonly #collections: Map<string, { readonly origin: string | undefined; readonly fields: Map<string, string> }>;

  constructor(model: SchemaModel) {
    this.#collections = new Map(
      [...model.values()].map(({ name, fields }) => [
        name,
        { origin: name, fields: new Map([...fields.keys()].map((field) => [field, field])) },
      ]),
    );
  }

  note(operation: Operation): void {
    switch (operation.type) {
      case 'createCollection':
        this.#collections.set(operation.name, { origin: undefined, fields: new Map() });
        break;
      case 'dropCollection':
        this.#collections.delete(operation.collection);
        break;
      case 'renameCollection':
        moveKey(this.#collections, operation.collection, operation.to);
        break;
      case 'dropField':
        this.#collections.get(operation.collection)?.fields.delete(operation.field);
        break;
      case 'renameField': {
        const fields = this.#collections.get(operation.collection)?.fields;
        if (fields) moveKey(fields, operation.from, operation.to);
        break;
      }
      case 'addField':
      case 'modifyField':
      case 'createIndex':
      case 'dropIndex':
      case 'addConstraint':
      case 'dropConstraint':
      case 'raw':
        break;
      default:
        operation satisfies never;
    }
  }

  renames(): Renames {
    const collections = new Map<string, string>();
    const fields = new Map<string, Map<string, string>>();
    for (const [name, { origin, fields: own }] of this.#collections) {
      if (origin === undefined) continue;
      if (origin !== name) collections.set(origin, name);
      const renamed = [...own].filter(([now, old]) => now !== old).map(([now, old]): [string, string] => [old, now]);
      if (renamed.length > 0) fields.set(name, new Map(renamed));
    }
    return { collections, fields };
  }
}

function moveKey<V>(map: Map<string, V>, from: string, to: string): void {
  const value = map.get(from);
  map.delete(from);
  if (value !== undefined) map.set(to, value);
}
