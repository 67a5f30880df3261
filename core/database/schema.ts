import type { ErrorCode } from '../error-codes.ts';
import { isPlainObject } from '../json.ts';
import { assertArguments, validatedArguments } from '../migration/arguments.ts';
import { constraintProblems } from '../schema/constraint.ts';
import { defaultDatesAsText, type FieldValue } from '../schema/dates.ts';
import { CHANGES_SHAPE, FIELD_SHAPE } from '../schema/define-field.ts';
import { dependents } from '../schema/keys.ts';
import type { FieldTypeName } from '../schema/model.ts';
import { derivedName } from '../schema/names.ts';
import type {
  ConstraintDefinition,
  CreateIndexOptions,
  FieldChanges,
  FieldDefinition,
  NamedFieldDefinition,
  RenameField,
  RenameFieldOptions,
} from '../schema/operation.ts';
import { INDEX_COLUMN, STRATEGY } from '../schema/operation-problems.ts';
import { type CreateOptions, INDEX_OPTIONS_PROPERTIES, OPTIONS_SHAPE } from '../schema/options.ts';
import type { Shape } from '../validate-shape.ts';
import type { Widened } from '../widened.ts';
import type { AutomaticMigrations, SchemaResult } from './automatic.ts';

/** The name of a field type, or a field definition. */
export type FieldSpec = FieldTypeName | FieldDefinition<FieldValue>;

export interface FieldSpecs {
  readonly [field: string]: FieldSpec;
}

/** The options of `db.schema.createIndex`. `name`: derived from the table and the columns by default. */
export type NamedIndexOptions = CreateIndexOptions & { readonly name?: string };

/** A specification after `defaultDatesAsText`, as it is stored. */
type StoredSpec = FieldTypeName | FieldDefinition;

const FIELD_SPEC: Shape = { either: ['string', FIELD_SHAPE] };
const COLUMN_SPEC: Shape = { either: ['string', INDEX_COLUMN] };
const RENAME_OPTIONS: Shape = { properties: { strategy: STRATEGY, changes: CHANGES_SHAPE } };
const INDEX_OPTIONS: Shape = {
  properties: {
    unique: 'boolean',
    name: 'string',
    sqlOptions: { properties: { concurrently: 'boolean' } },
    ...INDEX_OPTIONS_PROPERTIES,
  },
};

/** `db.schema`. Each call is one migration: it is applied completely, or it throws. */
export class SchemaOperations {
  readonly #migrations: AutomaticMigrations;

  constructor(migrations: AutomaticMigrations) {
    this.#migrations = migrations;
  }

  /** If the table exists, throws an error whose message contains `already exists`. */
  async create<const Fields, const Options = CreateOptions>(
    table: string,
    fields: Widened<Fields, FieldSpecs>,
    options?: Widened<Options, CreateOptions>,
  ): Promise<SchemaResult> {
    const shapes = { table: 'string', fields: { map: FIELD_SPEC }, options: OPTIONS_SHAPE } as const;
    const args = validated<{ table: string; fields: Record<string, StoredSpec>; options?: CreateOptions }>(
      'create',
      { table, fields: definitionsWithoutDates(fields), options },
      shapes,
    );
    return this.#migrations.run({
      name: `create_${table}`,
      operation: {
        type: 'createCollection',
        name: table,
        fields: Object.entries(args.fields).map(([name, spec]) => namedField(name, spec)),
        ...(args.options && { options: args.options }),
      },
    });
  }

  async addField<const Definition>(
    table: string,
    field: string,
    definition: Widened<Definition, FieldSpec>,
  ): Promise<SchemaResult> {
    const shapes = { table: 'string', field: 'string', definition: FIELD_SPEC } as const;
    const args = validated<{ table: string; field: string; definition: StoredSpec }>(
      'addField',
      { table, field, definition: defaultDatesAsText(definition) },
      shapes,
    );
    return this.#migrations.run({
      name: `add_${field}_to_${table}`,
      operation: { type: 'addField', collection: table, field: namedField(field, args.definition) },
    });
  }

  /** Also drops the indexes and constraints that use the field; a rollback restores them, but not the values. */
  async dropField(table: string, field: string): Promise<SchemaResult> {
    validated('dropField', { table, field }, { table: 'string', field: 'string' });
    return this.#migrations.run({
      name: `drop_${field}_from_${table}`,
      operation: { type: 'dropField', collection: table, field },
      prerequisites: (model) => dependents(model, table, field),
    });
  }

  async renameField<const Options = RenameFieldOptions>(
    table: string,
    from: string,
    to: string,
    options?: Widened<Options, RenameFieldOptions>,
  ): Promise<SchemaResult> {
    const shapes = { table: 'string', from: 'string', to: 'string', options: RENAME_OPTIONS } as const;
    const args = validated<{
      table: string;
      from: string;
      to: string;
      options?: Pick<RenameField, 'strategy' | 'changes'>;
    }>('renameField', { table, from, to, options: changesWithoutDates(options) }, shapes);
    return this.#migrations.run({
      name: `rename_${from}_to_${to}_in_${table}`,
      operation: { type: 'renameField', collection: table, from, to, ...args.options },
    });
  }

  /** Changes only the properties given. `null` removes a default, a length, a precision or a scale. */
  async modifyField<const Changes>(
    table: string,
    field: string,
    changes: Widened<Changes, FieldChanges<FieldValue>>,
  ): Promise<SchemaResult> {
    const shapes = { table: 'string', field: 'string', changes: CHANGES_SHAPE } as const;
    const args = validated<{ table: string; field: string; changes: FieldChanges }>(
      'modifyField',
      { table, field, changes: defaultDatesAsText(changes) },
      shapes,
    );
    return this.#migrations.run({
      name: `modify_${field}_of_${table}`,
      operation: { type: 'modifyField', collection: table, field, changes: args.changes },
    });
  }

  async createIndex<const Options = NamedIndexOptions>(
    table: string,
    columns: readonly (string | { readonly name: string; readonly order?: string })[],
    options?: Widened<Options, NamedIndexOptions>,
  ): Promise<SchemaResult> {
    const shapes = { table: 'string', columns: { list: COLUMN_SPEC }, options: INDEX_OPTIONS } as const;
    const args = validated<{ table: string; columns: typeof columns; options?: NamedIndexOptions }>(
      'createIndex',
      { table, columns, options },
      shapes,
    );
    if (args.columns.length === 0) {
      assertArguments(
        'createIndex',
        [{ path: ['columns'], text: 'is empty: an index needs at least one column' }],
        codeOf,
      );
    }
    const named = args.columns.map((column) => (typeof column === 'string' ? { name: column } : column));
    const { name, ...rest } = args.options ?? {};
    const index =
      name ??
      derivedName(
        table,
        named.map((column) => column.name),
        'idx',
        this.#migrations.names,
      );
    return this.#migrations.run({
      name: `create_${index}`,
      operation: { type: 'createIndex', collection: table, index, columns: named, ...rest },
    });
  }

  async dropIndex(table: string, index: string): Promise<SchemaResult> {
    validated('dropIndex', { table, index }, { table: 'string', index: 'string' });
    return this.#migrations.run({ name: `drop_${index}`, operation: { type: 'dropIndex', collection: table, index } });
  }

  async addConstraint<const Given>(
    table: string,
    constraint: Widened<Given, ConstraintDefinition>,
  ): Promise<SchemaResult> {
    assertArguments('addConstraint', constraintProblems(constraint, ['constraint']), codeOf);
    const shapes = { table: 'string', constraint: { map: 'any' } } as const;
    const args = validated<{ table: string; constraint: ConstraintDefinition }>(
      'addConstraint',
      { table, constraint },
      shapes,
    );
    return this.#migrations.run({
      name: `add_${args.constraint.name}`,
      operation: { type: 'addConstraint', collection: table, constraint: args.constraint },
    });
  }

  async dropConstraint(table: string, constraint: string): Promise<SchemaResult> {
    validated('dropConstraint', { table, constraint }, { table: 'string', constraint: 'string' });
    return this.#migrations.run({
      name: `drop_${constraint}`,
      operation: { type: 'dropConstraint', collection: table, constraint },
    });
  }

  async rename(table: string, to: string): Promise<SchemaResult> {
    validated('rename', { table, to }, { table: 'string', to: 'string' });
    return this.#migrations.run({
      name: `rename_${table}_to_${to}`,
      operation: { type: 'renameCollection', collection: table, to },
    });
  }

  /** With `cascade`, also drops the foreign keys of other tables that reference it. The table's rows are lost. */
  async drop(table: string, options?: { readonly cascade?: boolean }): Promise<SchemaResult> {
    const shapes = { table: 'string', options: { properties: { cascade: 'boolean' } } } as const;
    const args = validated<{ table: string; options?: { readonly cascade?: boolean } }>(
      'drop',
      { table, options },
      shapes,
    );
    return this.#migrations.run({
      name: `drop_${table}`,
      operation: { type: 'dropCollection', collection: table, ...(args.options?.cascade && { cascade: true }) },
    });
  }
}

/** Validates and copies the arguments. All are required but `options`. */
function validated<T extends object>(
  call: string,
  given: { readonly [K in keyof T]-?: unknown },
  shapes: { readonly [K in keyof T]-?: Shape },
): T {
  const required = (Object.keys(given) as (keyof T & string)[]).filter((key) => key !== 'options');
  return validatedArguments(call, given, shapes, { required, code: codeOf });
}

function codeOf(argument: string): ErrorCode {
  switch (argument) {
    case 'fields':
    case 'definition':
    case 'changes':
    case 'columns':
      return 'field_invalid';
    case 'constraint':
      return 'constraint_invalid';
    case 'options':
    case '':
      return 'migration_invalid';
    default:
      return 'name_invalid';
  }
}

/** Anything but a map of definitions is left to the validation. */
function definitionsWithoutDates(fields: unknown): unknown {
  if (!isPlainObject(fields)) return fields;
  return Object.fromEntries(Object.entries(fields).map(([name, spec]) => [name, defaultDatesAsText(spec)]));
}

function changesWithoutDates(options: unknown): unknown {
  if (!isPlainObject(options) || options.changes === undefined) return options;
  return { ...options, changes: defaultDatesAsText(options.changes) };
}

function namedField(name: string, spec: StoredSpec): NamedFieldDefinition {
  return typeof spec === 'string' ? { name, type: spec } : { ...spec, name };
}
