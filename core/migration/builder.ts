import { SvcError } from '../errors.ts';
import type {
  AddConstraint,
  ConstraintDefinition,
  CreateCollection,
  CreateIndex,
  FieldChanges,
  NamedField,
  Operation,
  Raw,
} from '../schema/operation.ts';
import type { CreateOptions } from '../schema/options.ts';
import type { Migration } from './migration.ts';
import { problems } from './problems.ts';
import { nameOfTag } from './tag.ts';

export interface RawOptions {
  /** Undoes the statement; without it the migration is irreversible. */
  readonly down?: string;
  /** A query that gives a row when the statement has taken effect. */
  readonly check?: string;
  /** `false` where the statement cannot be in a transaction. */
  readonly transaction?: boolean;
}

interface Step {
  readonly up: Operation;
  /** Or why there is none. */
  readonly down: readonly Operation[] | string;
}

/** Starts a migration; calls are chained and may be repeated. */
export function migration(tag: string): MigrationBuilder {
  return new MigrationBuilder(tag);
}

/** Collects operations with their way back. It sees no database: what a drop or a change replaces, `was` tells. */
export class MigrationBuilder {
  readonly #tag: string;
  readonly #steps: Step[] = [];
  #description: string | undefined;
  readonly #lossy: string[] = [];
  #irreversible: string | undefined;

  constructor(tag: string) {
    this.#tag = tag;
  }

  description(text: string): this {
    this.#description = text;
    return this;
  }

  /** Says what `down` does not bring back. */
  lossy(...what: string[]): this {
    this.#lossy.push(...what);
    return this;
  }

  irreversible(why: string): this {
    this.#irreversible = why;
    return this;
  }

  createCollection(name: string, fields: readonly NamedField[], options?: CreateOptions): this {
    return this.#add({ type: 'createCollection', name, fields, ...(options && { options }) }, [
      { type: 'dropCollection', collection: name },
    ]);
  }

  dropCollection(
    name: string,
    options: { was?: Omit<CreateCollection, 'type' | 'name'>; cascade?: boolean } = {},
  ): this {
    const { was, cascade } = options;
    return this.#add(
      { type: 'dropCollection', collection: name, ...(cascade !== undefined && { cascade }) },
      was ? [{ type: 'createCollection', name, ...was }] : `dropCollection ${name} was not told what the table was.`,
      `Rows of ${name} are not brought back.`,
    );
  }

  renameCollection(name: string, to: string): this {
    return this.#add({ type: 'renameCollection', collection: name, to }, [
      { type: 'renameCollection', collection: to, to: name },
    ]);
  }

  addField(collection: string, field: NamedField): this {
    return this.#add({ type: 'addField', collection, field }, [{ type: 'dropField', collection, field: field.name }]);
  }

  dropField(collection: string, field: string, options: { was?: Omit<NamedField, 'name'> } = {}): this {
    return this.#add(
      { type: 'dropField', collection, field },
      options.was
        ? [{ type: 'addField', collection, field: { name: field, ...options.was } }]
        : `dropField ${collection}.${field} was not told what the field was.`,
      `Values of ${collection}.${field} are not brought back.`,
    );
  }

  renameField(collection: string, from: string, to: string): this {
    return this.#add({ type: 'renameField', collection, from, to }, [
      { type: 'renameField', collection, from: to, to: from },
    ]);
  }

  modifyField(collection: string, field: string, changes: FieldChanges, options: { was?: FieldChanges } = {}): this {
    return this.#add(
      { type: 'modifyField', collection, field, changes },
      options.was
        ? [{ type: 'modifyField', collection, field, changes: options.was }]
        : `modifyField ${collection}.${field} was not told what it was before.`,
    );
  }

  createIndex(
    collection: string,
    index: string,
    columns: CreateIndex['columns'],
    options: Pick<CreateIndex, 'unique' | 'sqlOptions'> = {},
  ): this {
    return this.#add({ type: 'createIndex', collection, index, columns, ...options }, [
      { type: 'dropIndex', collection, index },
    ]);
  }

  dropIndex(collection: string, index: string, options: { was?: Pick<CreateIndex, 'columns' | 'unique'> } = {}): this {
    return this.#add(
      { type: 'dropIndex', collection, index },
      options.was
        ? [{ type: 'createIndex', collection, index, ...options.was }]
        : `dropIndex ${collection}.${index} was not told what the index was.`,
    );
  }

  addConstraint(collection: string, constraint: ConstraintDefinition): this {
    return this.#add({ type: 'addConstraint', collection, constraint }, [
      { type: 'dropConstraint', collection, constraint: constraint.name },
    ]);
  }

  dropConstraint(collection: string, constraint: string, options: { was?: AddConstraint['constraint'] } = {}): this {
    return this.#add(
      { type: 'dropConstraint', collection, constraint },
      options.was
        ? [{ type: 'addConstraint', collection, constraint: options.was }]
        : `dropConstraint ${collection}.${constraint} was not told what the constraint was.`,
    );
  }

  /** Database-specific text: runs only where the dialect matches. */
  raw(dialect: string, statement: string, options: RawOptions = {}): this {
    const { down, check, transaction } = options;
    const shared = { type: 'raw', dialect, ...(transaction !== undefined && { transaction }) } as const;
    const undo: Raw | undefined = down === undefined ? undefined : { ...shared, statement: down };
    return this.#add(
      { ...shared, statement, ...(check !== undefined && { check }) },
      undo ? [undo] : `A raw ${dialect} statement has no down.`,
    );
  }

  /** The migration object. Throws `migration_invalid` with every problem at once. */
  build(): Migration {
    const oneWay = this.#irreversible ?? this.#steps.map((step) => step.down).find((down) => typeof down === 'string');
    const built: Migration = {
      tag: this.#tag,
      name: nameOfTag(this.#tag),
      ...(this.#description !== undefined && { description: this.#description }),
      up: this.#steps.map((step) => step.up),
      down: oneWay ? [] : [...this.#steps].reverse().flatMap((step) => step.down as readonly Operation[]),
      ...(oneWay !== undefined && { irreversible: oneWay }),
      ...(this.#lossy.length > 0 && { lossy: this.#lossy }),
    };
    const found = problems(built);
    if (found.length > 0) {
      throw new SvcError('migration_invalid', `The migration "${this.#tag}" cannot be built.`, {
        why: found.join(' '),
      });
    }
    return built;
  }

  #add(up: Operation, down: Step['down'], lossy?: string): this {
    this.#steps.push({ up, down });
    if (lossy) this.#lossy.push(lossy);
    return this;
  }
}
