import type { Dialect } from '../dialect.ts';
import { SvcError } from '../errors.ts';
import { dropLoss } from '../schema/data-risks.ts';
import { invertObjectOperation } from '../schema/database-object.ts';
import { defaultDatesAsText, defaultDatesInListAsText, type FieldValue } from '../schema/dates.ts';
import { CHANGES_SHAPE } from '../schema/define-field.ts';
import type {
  ConstraintDefinition,
  CreateCollection,
  CreateIndex,
  CreateIndexOptions,
  FieldChanges,
  FieldDefinition,
  MigrationOperation,
  NamedFieldDefinition,
  ObjectOperation,
  OperationType,
  RenameFieldOptions,
} from '../schema/operation.ts';
import { operationProblems, STRATEGY } from '../schema/operation-problems.ts';
import { type CreateOptions, INDEX_OPTIONS_PROPERTIES } from '../schema/options.ts';
import { problemText, type Shape, shapeProblems } from '../validate-shape.ts';
import type { Widened } from '../widened.ts';
import { checksum, type Migration, type Permission } from './migration.ts';
import { type NoInverse, RAW_OPTIONS, type RawOptions, rawOperation, undoRaw } from './raw-options.ts';
import { generateUniqueTag, nameOfTag } from './tag.ts';
import { migrationProblems } from './validate-migration.ts';

interface BuilderStep {
  readonly up: MigrationOperation;
  /** The inverse operations, or why the step has none. Called only if `up` is valid. */
  readonly down: () => readonly MigrationOperation[] | string | NoInverse;
  readonly options: unknown;
  readonly optionsShape: Shape;
}

export interface DropCollectionOptions {
  /** The dropped table. */
  readonly was?: Pick<CreateCollection, 'primaryKey' | 'options'> & {
    readonly fields: readonly NamedFieldDefinition<FieldValue>[];
  };
  readonly cascade?: boolean;
}
export interface DropFieldOptions {
  readonly was?: FieldDefinition<FieldValue>;
}
export interface ModifyFieldOptions {
  /** Undoes the changes. */
  readonly was?: FieldChanges<FieldValue>;
}
export interface DropConstraintOptions {
  readonly was?: ConstraintDefinition;
}

// What has another type is found by `build`.
const storedFields = (fields: unknown) => defaultDatesInListAsText(fields) as readonly NamedFieldDefinition[];
const storedChanges = (changes: unknown) => defaultDatesAsText(changes) as FieldChanges;

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
  readonly #allow: Permission[] = [];
  #online: boolean | undefined;
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

  /** Permits what would otherwise need a flag of the run: copying a table (`copy`), destroying data (`destructive`). */
  allow(...permissions: readonly Permission[]): this {
    this.#allow.push(...permissions);
    return this;
  }

  /**
   * Whether tables are changed by statements during which they can be read and written, whatever their size. By default, only
   * tables with more than 10,000 rows are.
   */
  online(isOnline = true): this {
    this.#online = isOnline;
    return this;
  }

  /** Leaves `down` empty; a rollback fails with this reason. */
  irreversible(reason: string): this {
    this.#irreversible = reason;
    return this;
  }

  createCollection<const Fields, const Options = CreateOptions>(
    name: string,
    fields: Widened<Fields, readonly NamedFieldDefinition<FieldValue>[]>,
    options?: Widened<Options, CreateOptions>,
  ): this {
    const rest: Pick<CreateCollection, 'fields' | 'options'> = {
      fields: storedFields(fields),
      ...(options !== undefined && { options: options as CreateOptions }),
    };
    return this.#add({ type: 'createCollection', name, ...rest }, () => [{ type: 'dropCollection', collection: name }]);
  }

  dropCollection<const Options = DropCollectionOptions>(
    name: string,
    options?: Widened<Options, DropCollectionOptions>,
  ): this {
    const { cascade, was } = (options ?? {}) as DropCollectionOptions;
    return this.#add(
      { type: 'dropCollection', collection: name, ...(cascade !== undefined && { cascade }) },
      () =>
        was
          ? [{ type: 'createCollection', name, ...was, fields: storedFields(was.fields) }]
          : `dropCollection ${name} has no \`was\`, so the table cannot be restored.`,
      { options, optionsShape: DROP_OPTIONS, lossy: () => dropLoss(name) },
    );
  }

  renameCollection(name: string, to: string): this {
    return this.#add({ type: 'renameCollection', collection: name, to }, () => [
      { type: 'renameCollection', collection: to, to: name },
    ]);
  }

  addField<const Definition>(collection: string, field: Widened<Definition, NamedFieldDefinition<FieldValue>>): this {
    const stored = defaultDatesAsText(field) as NamedFieldDefinition;
    return this.#add({ type: 'addField', collection, field: stored }, () => [
      { type: 'dropField', collection, field: stored.name },
    ]);
  }

  dropField<const Options = DropFieldOptions>(
    collection: string,
    field: string,
    options?: Widened<Options, DropFieldOptions>,
  ): this {
    const { was } = (options ?? {}) as DropFieldOptions;
    return this.#add(
      { type: 'dropField', collection, field },
      () =>
        was
          ? [{ type: 'addField', collection, field: { name: field, ...(defaultDatesAsText(was) as FieldDefinition) } }]
          : `dropField ${collection}.${field} has no \`was\`, so the field cannot be restored.`,
      { options, optionsShape: WAS_OPTIONS, lossy: () => dropLoss(collection, field) },
    );
  }

  renameField<const Options = RenameFieldOptions & ModifyFieldOptions>(
    collection: string,
    from: string,
    to: string,
    options?: Widened<Options, RenameFieldOptions & ModifyFieldOptions>,
  ): this {
    const { was, changes, ...strategy } = (options ?? {}) as RenameFieldOptions & ModifyFieldOptions;
    const replaced = changes === undefined ? {} : { changes: storedChanges(changes) };
    const inverse = { type: 'renameField' as const, collection, from: to, to: from, ...strategy };
    return this.#add(
      { type: 'renameField', collection, from, to, ...strategy, ...replaced },
      () => {
        if (!changes) return [inverse];
        return was
          ? [{ ...inverse, changes: storedChanges(was) }]
          : `renameField ${collection}.${from} has no \`was\`, so the field cannot be restored.`;
      },
      {
        options: options && { ...strategy, ...replaced, ...(was !== undefined && { was: storedChanges(was) }) },
        optionsShape: RENAME_OPTIONS,
      },
    );
  }

  modifyField<const Changes, const Options = ModifyFieldOptions>(
    collection: string,
    field: string,
    changes: Widened<Changes, FieldChanges<FieldValue>>,
    options?: Widened<Options, ModifyFieldOptions>,
  ): this {
    const { was } = (options ?? {}) as ModifyFieldOptions;
    return this.#add(
      { type: 'modifyField', collection, field, changes: storedChanges(changes) },
      () =>
        was
          ? [{ type: 'modifyField', collection, field, changes: storedChanges(was) }]
          : `modifyField ${collection}.${field} has no \`was\`, so the field cannot be restored.`,
      { options, optionsShape: WAS_OPTIONS },
    );
  }

  createIndex<const Options = CreateIndexOptions>(
    collection: string,
    index: string,
    columns: CreateIndex['columns'],
    options?: Widened<Options, CreateIndexOptions>,
  ): this {
    return this.#add(
      { type: 'createIndex', collection, index, columns, ...(options as CreateIndexOptions | undefined) },
      () => [{ type: 'dropIndex', collection, index }],
      { options, optionsShape: INDEX_OPTIONS },
    );
  }

  dropIndex(
    collection: string,
    index: string,
    options?: { was?: Pick<CreateIndex, 'columns' | 'unique' | 'native'> },
  ): this {
    return this.#add(
      { type: 'dropIndex', collection, index },
      () =>
        options?.was
          ? [{ type: 'createIndex', collection, index, ...options.was }]
          : `dropIndex ${collection}.${index} has no \`was\`, so the index cannot be restored.`,
      { options, optionsShape: WAS_OPTIONS },
    );
  }

  addConstraint<const Given>(collection: string, constraint: Widened<Given, ConstraintDefinition>): this {
    const definition = constraint as ConstraintDefinition;
    return this.#add({ type: 'addConstraint', collection, constraint: definition }, () => [
      { type: 'dropConstraint', collection, constraint: definition.name },
    ]);
  }

  dropConstraint<const Options = DropConstraintOptions>(
    collection: string,
    constraint: string,
    options?: Widened<Options, DropConstraintOptions>,
  ): this {
    const { was } = (options ?? {}) as DropConstraintOptions;
    return this.#add(
      { type: 'dropConstraint', collection, constraint },
      () =>
        was
          ? [{ type: 'addConstraint', collection, constraint: was }]
          : `dropConstraint ${collection}.${constraint} has no \`was\`, so the constraint cannot be restored.`,
      { options, optionsShape: WAS_OPTIONS },
    );
  }

  /**
   * Creates what is not a table: a view, a function, a trigger. `definition` is in the engine's own language, without
   * the schema in its name.
   */
  createObject(kind: string, name: string, definition: string): this {
    return this.#addObject({ type: 'createObject', kind, name, definition });
  }

  /** Gives an object another definition; `was` is the present one. */
  replaceObject(kind: string, name: string, definition: string, { was }: { readonly was: string }): this {
    return this.#addObject({ type: 'replaceObject', kind, name, definition, was });
  }

  dropObject(kind: string, name: string, { was }: { readonly was: string }): this {
    return this.#addObject({ type: 'dropObject', kind, name, was });
  }

  /** A statement in the engine's own language. Other dialects skip it. */
  raw(dialect: string, statement: string, options?: RawOptions): this {
    const given = options ?? {}; // null is reported by build
    return this.#add(rawOperation(dialect, statement, given), () => undoRaw(dialect, given), {
      options,
      optionsShape: RAW_OPTIONS,
    });
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
    const withoutInverse = downs.filter((down): down is NoInverse => typeof down === 'object' && 'why' in down);
    const everywhere = this.#irreversible ?? downs.find((down) => typeof down === 'string');
    const irreversible = everywhere ?? withoutInverse[0]?.why;
    const irreversibleOn = new Set(
      everywhere === undefined ? withoutInverse.flatMap(({ dialect }) => dialect ?? []) : [],
    );
    const lossy = this.#lossy.map((sentence) => (typeof sentence === 'function' ? sentence() : sentence));
    const built: Migration = {
      tag: this.#tag,
      name: nameOfTag(this.#tag),
      ...(this.#description !== undefined && { description: this.#description }),
      up: this.#steps.map((step) => step.up),
      down: everywhere === undefined ? downs.reverse().flatMap((down) => (Array.isArray(down) ? down : [])) : [],
      ...(irreversible !== undefined && { irreversible }),
      ...(irreversibleOn.size > 0 && { irreversibleOn: [...irreversibleOn] }),
      ...(lossy.length > 0 && { lossy }),
      ...(this.#allow.length > 0 && { allow: [...new Set(this.#allow)] }),
      ...(this.#online !== undefined && { online: this.#online }),
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

  #addObject(operation: ObjectOperation): this {
    return this.#add(operation, () => [invertObjectOperation(operation)]);
  }

  #add(
    up: MigrationOperation,
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
  checksum: <const Given>(migration: Widened<Given, Migration>): string => checksum(migration as Migration),
} as const;
