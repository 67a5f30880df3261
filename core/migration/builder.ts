import { SvcError } from '../errors.ts';
import { CHANGES_SHAPE } from '../schema/field-changes.ts';
import type {
  AddConstraint,
  ConstraintDefinition,
  CreateCollection,
  CreateIndex,
  FieldChanges,
  NamedField,
  Operation,
  RenameField,
} from '../schema/operation.ts';
import type { CreateOptions, IndexOptions } from '../schema/options.ts';
import { INDEX_OPTIONS_PROPERTIES } from '../schema/options-shape.ts';
import { operationProblems, STRATEGY } from '../schema/problems.ts';
import { problemText, type Shape, shapeProblems } from '../schema/shape.ts';
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
  /** Or why there is none. Asked only when `up` is in order. */
  readonly down: () => readonly Operation[] | string;
  /** What the call was given beside its operation, and what it may look like. */
  readonly options: unknown;
  readonly shape: Shape;
}

const NONE: Shape = { properties: {} };
const WAS: Shape = { properties: { was: { map: 'any' } } };
const DROP: Shape = { properties: { was: { map: 'any' }, cascade: 'boolean' } };
const INDEX: Shape = {
  properties: {
    unique: 'boolean',
    sqlOptions: { properties: { concurrently: 'boolean' } },
    ...INDEX_OPTIONS_PROPERTIES,
  },
};
const RENAME: Shape = { properties: { strategy: STRATEGY, changes: CHANGES_SHAPE, was: CHANGES_SHAPE } };
const RAW: Shape = { properties: { down: 'string', check: 'string', transaction: 'boolean' } };

/** Starts a migration; calls are chained and may be repeated. */
export function migration(tag: string): MigrationBuilder {
  return new MigrationBuilder(tag);
}

/** Collects operations with their way back. It sees no database: what a drop or a change replaces, `was` tells. */
export class MigrationBuilder {
  readonly #tag: string;
  readonly #steps: Step[] = [];
  #description: string | undefined;
  readonly #lossy: (string | (() => string))[] = [];
  #irreversible: string | undefined;

  constructor(tag: string) {
    const given: unknown = tag;
    if (typeof given !== 'string') {
      throw new SvcError('tag_invalid', 'A migration needs a tag, which is a string.', {
        next: ["migration(MigrationHelpers.generateTag('add_orders'))"],
      });
    }
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
          : `dropCollection ${name} was not told what the table was.`,
      { options, shape: DROP, lossy: () => `Rows of ${name} are not brought back.` },
    );
  }

  renameCollection(name: string, to: string): this {
    return this.#add({ type: 'renameCollection', collection: name, to }, () => [
      { type: 'renameCollection', collection: to, to: name },
    ]);
  }

  addField(collection: string, field: NamedField): this {
    return this.#add({ type: 'addField', collection, field }, () => [
      { type: 'dropField', collection, field: field.name },
    ]);
  }

  dropField(collection: string, field: string, options?: { was?: Omit<NamedField, 'name'> }): this {
    return this.#add(
      { type: 'dropField', collection, field },
      () =>
        options?.was
          ? [{ type: 'addField', collection, field: { name: field, ...options.was } }]
          : `dropField ${collection}.${field} was not told what the field was.`,
      { options, shape: WAS, lossy: () => `Values of ${collection}.${field} are not brought back.` },
    );
  }

  renameField(
    collection: string,
    from: string,
    to: string,
    options: Pick<RenameField, 'strategy' | 'changes'> & { was?: FieldChanges } = {},
  ): this {
    const { was, ...rest } = options;
    const { changes, ...how } = rest;
    const back = { type: 'renameField' as const, collection, from: to, to: from, ...how };
    return this.#add(
      { type: 'renameField', collection, from, to, ...rest },
      () => {
        if (!changes) return [back];
        return was ? [{ ...back, changes: was }] : `renameField ${collection}.${from} was not told what it was before.`;
      },
      { options, shape: RENAME },
    );
  }

  modifyField(collection: string, field: string, changes: FieldChanges, options?: { was?: FieldChanges }): this {
    return this.#add(
      { type: 'modifyField', collection, field, changes },
      () =>
        options?.was
          ? [{ type: 'modifyField', collection, field, changes: options.was }]
          : `modifyField ${collection}.${field} was not told what it was before.`,
      { options, shape: WAS },
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
      { options, shape: INDEX },
    );
  }

  dropIndex(collection: string, index: string, options?: { was?: Pick<CreateIndex, 'columns' | 'unique'> }): this {
    return this.#add(
      { type: 'dropIndex', collection, index },
      () =>
        options?.was
          ? [{ type: 'createIndex', collection, index, ...options.was }]
          : `dropIndex ${collection}.${index} was not told what the index was.`,
      { options, shape: WAS },
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
          : `dropConstraint ${collection}.${constraint} was not told what the constraint was.`,
      { options, shape: WAS },
    );
  }

  /** Database-specific text: runs only where the dialect matches. */
  raw(dialect: string, statement: string, options?: RawOptions): this {
    const { down, check, transaction } = options ?? {};
    const shared = { type: 'raw', dialect, ...(transaction !== undefined && { transaction }) } as const;
    return this.#add(
      { ...shared, statement, ...(check !== undefined && { check }) },
      () => (down === undefined ? `A raw ${dialect} statement has no down.` : [{ ...shared, statement: down }]),
      { options, shape: RAW },
    );
  }

  /** The migration object. Throws `migration_invalid` with every problem at once. */
  build(): Migration {
    const misused = this.#steps.flatMap(({ up, options, shape }, index) =>
      [
        ...operationProblems(up),
        ...(options === undefined ? [] : shapeProblems(options, shape, ['options']).map(problemText)),
      ].map((problem) => `up[${index}] ${problem}`),
    );
    if (misused.length > 0) throw this.#refusal(misused);
    const downs = this.#steps.map((step) => step.down());
    const oneWay = this.#irreversible ?? downs.find((down) => typeof down === 'string');
    const lossy = this.#lossy.map((what) => (typeof what === 'function' ? what() : what));
    const built: Migration = {
      tag: this.#tag,
      name: nameOfTag(this.#tag),
      ...(this.#description !== undefined && { description: this.#description }),
      up: this.#steps.map((step) => step.up),
      down: oneWay ? [] : downs.reverse().flatMap((down) => down as readonly Operation[]),
      ...(oneWay !== undefined && { irreversible: oneWay }),
      ...(lossy.length > 0 && { lossy }),
    };
    const found = problems(built);
    if (found.length > 0) throw this.#refusal(found);
    return built;
  }

  #refusal(found: readonly string[]): SvcError {
    return new SvcError('migration_invalid', `The migration "${this.#tag}" cannot be built.`, { why: found.join(' ') });
  }

  #add(
    up: Operation,
    down: Step['down'],
    { options, shape = NONE, lossy }: Partial<Pick<Step, 'options' | 'shape'>> & { lossy?: () => string } = {},
  ): this {
    this.#steps.push({ up, down, options, shape });
    if (lossy) this.#lossy.push(lossy);
    return this;
  }
}
