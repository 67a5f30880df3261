import type { ErrorCode } from '../errors.ts';
import { ownArguments, refuseArguments } from '../migration/arguments.ts';
import { constraintProblems } from '../schema/constraint.ts';
import { dependents } from '../schema/dependents.ts';
import { FIELD_SHAPE } from '../schema/field.ts';
import { CHANGES_SHAPE } from '../schema/field-changes.ts';
import { derivedName } from '../schema/names.ts';
import type {
  ConstraintDefinition,
  CreateIndex,
  FieldChanges,
  FieldDefinition,
  NamedField,
  RenameField,
} from '../schema/operation.ts';
import type { CreateOptions, IndexOptions } from '../schema/options.ts';
import { INDEX_OPTIONS_PROPERTIES, OPTIONS_SHAPE } from '../schema/options-shape.ts';
import { INDEX_COLUMN, STRATEGY } from '../schema/problems.ts';
import type { Shape } from '../schema/shape.ts';
import type { FieldTypeName } from '../schema/types.ts';
import type { AutomaticMigrations, SchemaResult } from './automatic.ts';

/** A field type alone, or a definition. */
export type FieldSpec = FieldTypeName | FieldDefinition;

const FIELD: Shape = { either: ['string', FIELD_SHAPE] };
const INDEXED: Shape = { either: ['string', INDEX_COLUMN] };
const RENAME_OPTIONS: Shape = { properties: { strategy: STRATEGY, changes: CHANGES_SHAPE } };
const INDEX_OPTIONS: Shape = {
  properties: {
    unique: 'boolean',
    name: 'string',
    sqlOptions: { properties: { concurrently: 'boolean' } },
    ...INDEX_OPTIONS_PROPERTIES,
  },
};

/** `db.schema`: each call gives `{ migration, durationMs, statements }` and throws before anything has changed, or applies all of it. */
export class SchemaOperations {
  readonly #migrations: AutomaticMigrations;

  constructor(migrations: AutomaticMigrations) {
    this.#migrations = migrations;
  }

  /** Throws an error whose message contains `already exists` for a table that does. */
  async create(
    table: string,
    fields: { readonly [field: string]: FieldSpec },
    options?: CreateOptions,
  ): Promise<SchemaResult> {
    const shapes = { table: 'string', fields: { map: FIELD }, options: OPTIONS_SHAPE } as const;
    const own = checked('create', { table, fields, options }, shapes);
    return this.#migrations.run({
      name: `create_${table}`,
      operation: {
        type: 'createCollection',
        name: table,
        fields: Object.entries(own.fields).map(([name, spec]) => namedField(name, spec)),
        ...(own.options && { options: own.options }),
      },
    });
  }

  async addField(table: string, field: string, definition: FieldSpec): Promise<SchemaResult> {
    const shapes = { table: 'string', field: 'string', definition: FIELD } as const;
    const own = checked('addField', { table, field, definition }, shapes);
    return this.#migrations.run({
      name: `add_${field}_to_${table}`,
      operation: { type: 'addField', collection: table, field: namedField(field, own.definition) },
    });
  }

  /** Drops the indexes and constraints that use the field first; the way back brings them back. Its values are lost. */
  async dropField(table: string, field: string): Promise<SchemaResult> {
    checked('dropField', { table, field }, { table: 'string', field: 'string' });
    return this.#migrations.run({
      name: `drop_${field}_from_${table}`,
      operation: { type: 'dropField', collection: table, field },
      first: (model) => dependents(model, table, field),
    });
  }

  async renameField(
    table: string,
    from: string,
    to: string,
    options?: Pick<RenameField, 'strategy' | 'changes'>,
  ): Promise<SchemaResult> {
    const shapes = { table: 'string', from: 'string', to: 'string', options: RENAME_OPTIONS } as const;
    const own = checked('renameField', { table, from, to, options }, shapes);
    return this.#migrations.run({
      name: `rename_${from}_to_${to}_in_${table}`,
      operation: { type: 'renameField', collection: table, from, to, ...own.options },
    });
  }

  /** What is not mentioned stays; `null` takes a default, a length, a precision or a scale away. */
  async modifyField(table: string, field: string, changes: FieldChanges): Promise<SchemaResult> {
    const shapes = { table: 'string', field: 'string', changes: CHANGES_SHAPE } as const;
    const own = checked('modifyField', { table, field, changes }, shapes);
    return this.#migrations.run({
      name: `modify_${field}_of_${table}`,
      operation: { type: 'modifyField', collection: table, field, changes: own.changes },
    });
  }

  async createIndex(
    table: string,
    columns: readonly (string | { readonly name: string; readonly order?: string })[],
    options?: Pick<CreateIndex, 'unique' | 'sqlOptions' | keyof IndexOptions> & { readonly name?: string },
  ): Promise<SchemaResult> {
    const shapes = { table: 'string', columns: { list: INDEXED }, options: INDEX_OPTIONS } as const;
    const own = checked('createIndex', { table, columns, options }, shapes);
    if (own.columns.length === 0) {
      refuseArguments('createIndex', [{ path: ['columns'], text: 'is empty: an index needs at least one' }], codeOf);
    }
    const named = own.columns.map((column) => (typeof column === 'string' ? { name: column } : column));
    const { name, ...rest } = own.options ?? {};
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
    checked('dropIndex', { table, index }, { table: 'string', index: 'string' });
    return this.#migrations.run({ name: `drop_${index}`, operation: { type: 'dropIndex', collection: table, index } });
  }

  async addConstraint(table: string, constraint: ConstraintDefinition): Promise<SchemaResult> {
    refuseArguments('addConstraint', constraintProblems(constraint, ['constraint']), codeOf);
    const shapes = { table: 'string', constraint: { map: 'any' } } as const;
    const own = checked('addConstraint', { table, constraint }, shapes);
    return this.#migrations.run({
      name: `add_${own.constraint.name}`,
      operation: { type: 'addConstraint', collection: table, constraint: own.constraint },
    });
  }

  async dropConstraint(table: string, constraint: string): Promise<SchemaResult> {
    checked('dropConstraint', { table, constraint }, { table: 'string', constraint: 'string' });
    return this.#migrations.run({
      name: `drop_${constraint}`,
      operation: { type: 'dropConstraint', collection: table, constraint },
    });
  }

  async rename(table: string, to: string): Promise<SchemaResult> {
    checked('rename', { table, to }, { table: 'string', to: 'string' });
    return this.#migrations.run({
      name: `rename_${table}_to_${to}`,
      operation: { type: 'renameCollection', collection: table, to },
    });
  }

  /** With `cascade` the foreign keys of other tables that point at it go first. Its rows are lost. */
  async drop(table: string, options?: { readonly cascade?: boolean }): Promise<SchemaResult> {
    const shapes = { table: 'string', options: { properties: { cascade: 'boolean' } } } as const;
    const own = checked('drop', { table, options }, shapes);
    return this.#migrations.run({
      name: `drop_${table}`,
      operation: { type: 'dropCollection', collection: table, ...(own.options?.cascade && { cascade: true }) },
    });
  }
}

/** Of the arguments of a call only its options may be left out. */
function checked<T extends object>(call: string, given: T, shapes: { readonly [K in keyof T]-?: Shape }): T {
  const required = (Object.keys(given) as (keyof T & string)[]).filter((key) => key !== 'options');
  return ownArguments(call, given, shapes, { required, code: codeOf });
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

function namedField(name: string, spec: FieldSpec): NamedField {
  return typeof spec === 'string' ? { name, type: spec } : { ...spec, name };
}
