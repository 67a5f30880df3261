import type { Dialect } from '../dialect.ts';
import { SvcError } from '../errors.ts';
import { CHANGES_SHAPE } from '../schema/define-field.ts';
import type {
  AddConstraint,
  ConstraintDefinition,
  CreateCollection,
  CreateIndex,
  FieldChanges,
  NamedFieldDefinition,
  Operation,
  OperationType,
  RenameField,
} from '../schema/operation.ts';
import { operationProblems, STRATEGY } from '../schema/operation-problems.ts';
import { type CreateOptions, INDEX_OPTIONS_PROPERTIES, type IndexOptions } from '../schema/options.ts';
import { problemText, type Shape, shapeProblems } from '../validate-shape.ts';
import { checksum, type Migration } from './migration.ts';
import { generateUniqueTag, nameOfTag } from './tag.ts';
import { migrationProblems } from './validate-migration.ts';

export interface RawOptions {
  /** Undoes the statement; without it the migration is irreversible. */
  readonly down?: string;
  /** A query that returns a row once the statement has taken effect. */
  readonly check?: string;
  /** `false` if the statement cannot run in a transaction. */
  readonly transaction?: boolean;
  /** Whether the statement and its `down` destroy data; by default, each does if it drops, truncates or deletes. */
  readonly destructive?: boolean;
}

interface BuilderStep {
  readonly up: Operation;
  /** The inverse operations, or the reason why the step has no inverse. Called only if `up` is valid. */
  readonly down: () => readonly Operation[] | string;
  readonly options: unknown;
  readonly optionsShape: Shape;
}

const NO_OPTIONS: Shape = { properties: {} };
const WAS_OPTIONS: Shape = { properties: { was: { map: 'any' } } };
const DROP_OPTIONS: Shape = { properties: { was: { map: 'any' }, cascade: 'boolean' } };
const INDEX_OPTIONS: Shape = {
  properties: {
    unique: 'boolean',
    sqlOptions: { properties: { concurrently: 'boolean' } },
    ...INDEX_OPTIONS_PROPERTIES,
  },
};
const RENAME_OPTIONS: Shape = { properties: { strategy: STRATEGY, changes: CHANGES_SHAPE, was: CHANGES_SHAPE } };
const RAW_OPTIONS: Shape = {
  properties: { down: 'string', check: 'string', transaction: 'boolean', destructive: 'boolean' },
};

/** Starts a migration. Calls are chained and may be repeated. */
export function migration(tag: string): MigrationBuilder {
  return new MigrationBuilder(tag);
}

/** Collects operations and their inverses. Reads no database: pass the definition that a drop or change replaces as `was`. */
export class MigrationBuilder implements Readonly<Record<OperationType, unknown>> {
  readonly #tag: string;
  readonly #steps: BuilderStep[] = [];
  #description: string | undefined;
  readonly #lossy: (string | (() => string))[] = [];
  #irreversible: string | undefined;

  constructor(tag: string) {
    const given: unknown = tag;
    if (typeof given !== 'string') {
      throw new SvcError('tag_invalid', 'The tag of a migration must be a string.', {
        next: ["migration(MigrationHelpers.generateTag('add_orders'))"],
      });
    }
    this.#tag = tag;
  }

  description(text: string): this {
    this.#description = text;
    return this;
  }

  /** Adds sentences that describe data `down` cannot restore. */
  lossy(...sentences: string[]): this {
    this.#lossy.push(...sentences);
    return this;
  }

  /** Leaves `down` empty; a rollback fails with this reason. */
  irreversible(reason: string): this {
    this.#irreversible = reason;
    return this;
  }

  createCollection(name: string, fields: readonly NamedFieldDefinition[], options?: CreateOptions): this {
    return this.#add({ type: 'createCollection', name, fields, ...(options !== undefined && { options }) }, () => [
      { type: 'dropCollection', collection: name },
    ]);
  }

  dropCollection(name: string, options?: { was?: Omit<CreateCollection, 'type' | 'name'>; cascade?: boolean }): this {
    const cascade = options?.cascade;
    return this.#add(
      { type: 'dropCollection', collection: name, ...(cascade !== undefined && { cascade }) },
      () =>
        options?.was
          ? [{ type: 'createCollection', name, ...options.was }]
          : `dropCollection ${name} has no \`was\`, so the table cannot be restored.`,
      { options, optionsShape: DROP_OPTIONS, lossy: () => `Rows of ${name} cannot be restored.` },
    );
  }

  renameCollection(name: string, to: string): this {
    return this.#add({ type: 'renameCollection', collection: name, to }, () => [
      { type: 'renameCollection', collection: to, to: name },
    ]);
  }

  addField(collection: string, field: NamedFieldDefinition): this {
    return this.#add({ type: 'addField', collection, field }, () => [
      { type: 'dropField', collection, field: field.name },
    ]);
  }

  dropField(collection: string, field: string, options?: { was?: Omit<NamedFieldDefinition, 'name'> }): this {
    return this.#add(
      { type: 'dropField', collection, field },
      () =>
        options?.was
          ? [{ type: 'addField', collection, field: { name: field, ...options.was } }]
          : `dropField ${collection}.${field} has no \`was\`, so the field cannot be restored.`,
      { options, optionsShape: WAS_OPTIONS, lossy: () => `Values of ${collection}.${field} cannot be restored.` },
    );
  }

  renameField(
    collection: string,
    from: string,
    to: string,
    options: Pick<RenameField, 'strategy' | 'changes'> & { was?: FieldChanges } = {},
  ): this {
    const { was, ...rest } = options;
    const { changes, ...strategy } = rest;
    const inverse = { type: 'renameField' as const, collection, from: to, to: from, ...strategy };
    return this.#add(
      { type: 'renameField', collection, from, to, ...rest },
      () => {
        if (!changes) return [inverse];
        return was
          ? [{ ...inverse, changes: was }]
          : `renameField ${collection}.${from} has no \`was\`, so the field cannot be restored.`;
      },
      { options, optionsShape: RENAME_OPTIONS },
    );
  }

  modifyField(collection: string, field: string, changes: FieldChanges, options?: { was?: FieldChanges }): this {
    return this.#add(
      { type: 'modifyField', collection, field, changes },
      () =>
        options?.was
          ? [{ type: 'modifyField', collection, field, changes: options.was }]
          : `modifyField ${collection}.${field} has no \`was\`, so the field cannot be restored.`,
      { options, optionsShape: WAS_OPTIONS },
    );
  }

  createIndex(
    collection: string,
    index: string,
    columns: CreateIndex['columns'],
    options?: Pick<CreateIndex, 'unique' | 'sqlOptions' | keyof IndexOptions>,
  ): this {
    return this.#add(
      { type: 'createIndex', collection, index, columns, ...options },
      () => [{ type: 'dropIndex', collection, index }],
      { options, optionsShape: INDEX_OPTIONS },
    );
  }

  dropIndex(collection: string, index: string, options?: { was?: Pick<CreateIndex, 'columns' | 'unique'> }): this {
    return this.#add(
      { type: 'dropIndex', collection, index },
      () =>
        options?.was
          ? [{ type: 'createIndex', collection, index, ...options.was }]
          : `dropIndex ${collection}.${index} has no \`was\`, so the index cannot be restored.`,
      { options, optionsShape: WAS_OPTIONS },
    );
  }

  addConstraint(collection: string, constraint: ConstraintDefinition): this {
    return this.#add({ type: 'addConstraint', collection, constraint }, () => [
      { type: 'dropConstraint', collection, constraint: constraint.name },
    ]);
  }

  dropConstraint(collection: string, constraint: string, options?: { was?: AddConstraint['constraint'] }): this {
    return this.#add(
      { type: 'dropConstraint', collection, constraint },
      () =>
        options?.was
          ? [{ type: 'addConstraint', collection, constraint: options.was }]
          : `dropConstraint ${collection}.${constraint} has no \`was\`, so the constraint cannot be restored.`,
      { options, optionsShape: WAS_OPTIONS },
    );
  }

  /** A statement in the engine's own language. Other dialects reject the migration. */
  raw(dialect: string, statement: string, options?: RawOptions): this {
    const { down, check, transaction, destructive } = options ?? {};
    const shared = {
      type: 'raw',
      dialect,
      ...(transaction !== undefined && { transaction }),
      ...(destructive !== undefined && { destructive }),
    } as const;
    return this.#add(
      { ...shared, statement, ...(check !== undefined && { check }) },
      () => (down === undefined ? `The raw ${dialect} statement has no \`down\`.` : [{ ...shared, statement: down }]),
      { options, optionsShape: RAW_OPTIONS },
    );
  }

  /** Returns the migration object. Throws `migration_invalid` with every problem at once. */
  build(): Migration {
    const callProblems = this.#steps.flatMap(({ up, options, optionsShape }, index) =>
      [
        ...operationProblems(up),
        ...(options === undefined ? [] : shapeProblems(options, optionsShape, ['options']).map(problemText)),
      ].map((problem) => `up[${index}] ${problem}`),
    );
    if (callProblems.length > 0) throw this.#invalid(callProblems);
    const downs = this.#steps.map((step) => step.down());
    const irreversible = this.#irreversible ?? downs.find((down) => typeof down === 'string');
    const lossy = this.#lossy.map((sentence) => (typeof sentence === 'function' ? sentence() : sentence));
    const built: Migration = {
      tag: this.#tag,
      name: nameOfTag(this.#tag),
      ...(this.#description !== undefined && { description: this.#description }),
      up: this.#steps.map((step) => step.up),
      down: irreversible ? [] : downs.reverse().flatMap((down) => down as readonly Operation[]),
      ...(irreversible !== undefined && { irreversible }),
      ...(lossy.length > 0 && { lossy }),
    };
    const problems = migrationProblems(built);
    if (problems.length > 0) throw this.#invalid(problems);
    return built;
  }

  #invalid(problems: readonly string[]): SvcError {
    return new SvcError('migration_invalid', `The migration "${this.#tag}" cannot be built.`, {
      why: problems.join(' '),
    });
  }

  #add(
    up: Operation,
    down: BuilderStep['down'],
    {
      options,
      optionsShape = NO_OPTIONS,
      lossy,
    }: Partial<Pick<BuilderStep, 'options' | 'optionsShape'>> & { lossy?: () => string } = {},
  ): this {
    this.#steps.push({ up, down, options, optionsShape });
    if (lossy) this.#lossy.push(lossy);
    return this;
  }
}

export const MigrationHelpers = {
  /** Returns `<YYYYMMDD>_<HHMMSS>_<name>` in UTC, at least one second later than the last tag of this process. */
  generateTag: (name: string): string => generateUniqueTag(name),
  /** Whether the migration can be applied; `problems` returns the reasons if not. */
  validate: (migration: unknown, dialect?: Dialect): boolean => migrationProblems(migration, dialect).length === 0,
  /** Why `validate` is false. With a dialect (`db.getAdapter().dialect`), also checks what the engine supports. */
  problems: migrationProblems,
  /** sha256, in hex, of the canonical JSON of tag, up and down. Throws `value_invalid` for values JSON lacks. */
  checksum: (migration: Migration): string => checksum(migration),
} as const;
