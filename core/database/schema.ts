import type { ErrorCode } from '../errors.ts';
import { assertArguments, validatedArguments } from '../migration/arguments.ts';
import { constraintProblems } from '../schema/constraint.ts';
import { CHANGES_SHAPE, FIELD_SHAPE } from '../schema/define-field.ts';
import { dependents } from '../schema/keys.ts';
import type { FieldTypeName } from '../schema/model.ts';
import { derivedName } from '../schema/names.ts';
import type {
  ConstraintDefinition,
  CreateIndex,
  FieldChanges,
  FieldDefinition,
  NamedFieldDefinition,
  RenameField,
} from '../schema/operation.ts';
import { INDEX_COLUMN, STRATEGY } from '../schema/operation-problems.ts';
import { type CreateOptions, INDEX_OPTIONS_PROPERTIES, type IndexOptions, OPTIONS_SHAPE } from '../schema/options.ts';
import type { Shape } from '../validate-shape.ts';
import type { AutomaticMigrations, SchemaResult } from './automatic.ts';

/** The name of a field type, or a field definition. */
export type FieldSpec = FieldTypeName | FieldDefinition;

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
  async create(
    table: string,
    fields: { readonly [field: string]: FieldSpec },
    options?: CreateOptions,
  ): Promise<SchemaResult> {
    const shapes = { table: 'string', fields: { map: FIELD_SPEC }, options: OPTIONS_SHAPE } as const;
    const args = validated('create', { table, fields, options }, shapes);
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

  async addField(table: string, field: string, definition: FieldSpec): Promise<SchemaResult> {
    const shapes = { table: 'string', field: 'string', definition: FIELD_SPEC } as const;
    const args = validated('addField', { table, field, definition }, shapes);
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

  async renameField(
    table: string,
    from: string,
    to: string,
    options?: Pick<RenameField, 'strategy' | 'changes'>,
  ): Promise<SchemaResult> {
    const shapes = { table: 'string', from: 'string', to: 'string', options: RENAME_OPTIONS } as const;
    const args = validated('renameField', { table, from, to, options }, shapes);
    return this.#migrations.run({
      name: `rename_${from}_to_${to}_in_${table}`,
      operation: { type: 'renameField', collection: table, from, to, ...args.options },
    });
  }

  /** Changes only the properties given. `null` removes a default, a length, a precision or a scale. */
  async modifyField(table: string, field: string, changes: FieldChanges): Promise<SchemaResult> {
    const shapes = { table: 'string', field: 'string', changes: CHANGES_SHAPE } as const;
    const args = validated('modifyField', { table, field, changes }, shapes);
    return this.#migrations.run({
      name: `modify_${field}_of_${table}`,
      operation: { type: 'modifyField', collection: table, field, changes: args.changes },
    });
  }

  async createIndex(
    table: string,
    columns: readonly (string | { readonly name: string; readonly order?: string })[],
    options?: Pick<CreateIndex, 'unique' | 'sqlOptions' | keyof IndexOptions> & { readonly name?: string },
  ): Promise<SchemaResult> {
    const shapes = { table: 'string', columns: { list: COLUMN_SPEC }, options: INDEX_OPTIONS } as const;
    const args = validated('createIndex', { table, columns, options }, shapes);
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

  async addConstraint(table: string, constraint: ConstraintDefinition): Promise<SchemaResult> {
    assertArguments('addConstraint', constraintProblems(constraint, ['constraint']), codeOf);
    const shapes = { table: 'string', constraint: { map: 'any' } } as const;
    const args = validated('addConstraint', { table, constraint }, shapes);
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
    const args = validated('drop', { table, options }, shapes);
    return this.#migrations.run({
      name: `drop_${table}`,
      operation: { type: 'dropCollection', collection: table, ...(args.options?.cascade && { cascade: true }) },
    });
  }
}

/** Validates and copies the arguments. All are required but `options`. */
function validated<T extends object>(call: string, given: T, shapes: { readonly [K in keyof T]-?: Shape }): T {
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

function namedField(name: string, spec: FieldSpec): NamedFieldDefinition {
  return typeof spec === 'string' ? { name, type: spec } : { ...spec, name };
}
