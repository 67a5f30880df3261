import { SvcError } from '../errors.ts';
import { dependents } from '../schema/dependents.ts';
import { derivedName } from '../schema/names.ts';
import type {
  ConstraintDefinition,
  CreateIndex,
  FieldChanges,
  FieldDefinition,
  NamedField,
} from '../schema/operation.ts';
import type { CreateOptions } from '../schema/options.ts';
import type { AutomaticMigrations, SchemaResult } from './automatic.ts';

/** A field type alone, or a definition. */
export type FieldSpec = string | FieldDefinition;

/** `db.schema`: each call gives `{ migration, durationMs, statements }` and throws before anything has changed, or applies all of it. */
export class SchemaOperations {
  readonly #migrations: AutomaticMigrations;

  constructor(migrations: AutomaticMigrations) {
    this.#migrations = migrations;
  }

  /** Throws an error whose message contains `already exists` for a table that does. */
  create(
    table: string,
    fields: { readonly [field: string]: FieldSpec },
    options?: CreateOptions,
  ): Promise<SchemaResult> {
    const named = Object.entries(fields).map(([name, spec]) => namedField(name, spec));
    return this.#migrations.run({
      name: `create_${table}`,
      operation: { type: 'createCollection', name: table, fields: named, ...(options && { options }) },
    });
  }

  addField(table: string, field: string, definition: FieldSpec): Promise<SchemaResult> {
    return this.#migrations.run({
      name: `add_${field}_to_${table}`,
      operation: { type: 'addField', collection: table, field: namedField(field, definition) },
    });
  }

  /** Drops the indexes and constraints that use the field first; the way back brings them back. Its values are lost. */
  dropField(table: string, field: string): Promise<SchemaResult> {
    return this.#migrations.run({
      name: `drop_${field}_from_${table}`,
      operation: { type: 'dropField', collection: table, field },
      first: (model) => dependents(model, table, field),
    });
  }

  renameField(table: string, from: string, to: string): Promise<SchemaResult> {
    return this.#migrations.run({
      name: `rename_${from}_to_${to}_in_${table}`,
      operation: { type: 'renameField', collection: table, from, to },
    });
  }

  /** What is not mentioned stays; `null` takes a default, a length, a precision or a scale away. */
  modifyField(table: string, field: string, changes: FieldChanges): Promise<SchemaResult> {
    return this.#migrations.run({
      name: `modify_${field}_of_${table}`,
      operation: { type: 'modifyField', collection: table, field, changes },
    });
  }

  createIndex(
    table: string,
    columns: readonly (string | { readonly name: string; readonly order?: string })[],
    options: Pick<CreateIndex, 'unique' | 'sqlOptions'> & { readonly name?: string } = {},
  ): Promise<SchemaResult> {
    if (columns.length === 0) throw new SvcError('field_invalid', 'An index needs at least one column.');
    const named = columns.map((column) => (typeof column === 'string' ? { name: column } : column));
    const { name, ...rest } = options;
    const index =
      name ??
      derivedName(
        table,
        named.map((column) => column.name),
        'idx',
        this.#migrations.identifierBytes,
      );
    return this.#migrations.run({
      name: `create_${index}`,
      operation: { type: 'createIndex', collection: table, index, columns: named, ...rest },
    });
  }

  dropIndex(table: string, index: string): Promise<SchemaResult> {
    return this.#migrations.run({ name: `drop_${index}`, operation: { type: 'dropIndex', collection: table, index } });
  }

  addConstraint(table: string, constraint: ConstraintDefinition): Promise<SchemaResult> {
    return this.#migrations.run({
      name: `add_${constraint.name}`,
      operation: { type: 'addConstraint', collection: table, constraint },
    });
  }

  dropConstraint(table: string, constraint: string): Promise<SchemaResult> {
    return this.#migrations.run({
      name: `drop_${constraint}`,
      operation: { type: 'dropConstraint', collection: table, constraint },
    });
  }

  rename(table: string, to: string): Promise<SchemaResult> {
    return this.#migrations.run({
      name: `rename_${table}_to_${to}`,
      operation: { type: 'renameCollection', collection: table, to },
    });
  }

  /** With `cascade` the foreign keys of other tables that point at it go first. Its rows are lost. */
  drop(table: string, options: { readonly cascade?: boolean } = {}): Promise<SchemaResult> {
    return this.#migrations.run({
      name: `drop_${table}`,
      operation: { type: 'dropCollection', collection: table, ...(options.cascade && { cascade: true }) },
    });
  }
}

function namedField(name: string, spec: FieldSpec): NamedField {
  return typeof spec === 'string' ? { name, type: spec } : { ...spec, name };
}
