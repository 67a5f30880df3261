import { isSvcError } from '../errors.ts';
import { applyInPlace } from '../schema/apply.ts';
import {
  applyToObjects,
  type DatabaseObject,
  describeObjectDifferences,
  isObjectOperation,
} from '../schema/database-object.ts';
import { defineConstraint } from '../schema/define.ts';
import { describeDifferences } from '../schema/diff.ts';
import { collectionOf } from '../schema/find-or-throw.ts';
import type { Collection } from '../schema/model.ts';
import { modelOperations } from '../schema/model-operations.ts';
import { MutableSchema } from '../schema/mutable-schema.ts';
import type { AddConstraint, MigrationOperation, ModelOperation, RenameField } from '../schema/operation.ts';
import { requiredCollections } from './affected-collections.ts';
import type { Migration } from './migration.ts';

/** Replays applied migrations in order. An error names the first operation that cannot be applied. */
export function replayMigrations(migrations: readonly Migration[], dialect: string): MigrationReplay {
  const replay = new MigrationReplay(dialect);
  for (const { tag, up } of migrations) {
    for (const [index, operation] of up.entries()) {
      try {
        replay.apply(operation);
      } catch (error) {
        throw isSvcError(error) ? error.with({ where: `${tag} up[${index}]`, details: { tag } }) : error;
      }
    }
  }
  return replay;
}

/** Describes where two replays differ. An unmanaged table that only `actual` contains is not a difference. */
export function replayDifferences(expected: MigrationReplay, actual: MigrationReplay): string[] {
  const known = [...actual.model].filter(([name]) => expected.model.has(name) || !actual.unmanaged.has(name));
  return [
    ...describeDifferences(expected.model, new Map(known)),
    ...describeObjectDifferences(expected.objects, actual.objects),
  ];
}

/**
 * The schema that applied operations produce, computed without a database. A table that they change or reference but
 * did not create is unmanaged: the model contains only its name, because only the catalog knows its fields.
 */
export class MigrationReplay {
  readonly model = new MutableSchema();
  readonly objects = new Map<string, DatabaseObject>();
  /** Every name that was unmanaged at some point of the replay. */
  readonly everUnmanaged = new Set<string>();
  readonly #unmanaged = new Set<string>();
  readonly #dialect: string;

  /** Raw statements of other dialects do not count. */
  constructor(dialect: string) {
    this.#dialect = dialect;
  }

  /** The unmanaged tables, under their current names. */
  get unmanaged(): ReadonlySet<string> {
    return this.#unmanaged;
  }

  apply(operation: MigrationOperation): void {
    if (isObjectOperation(operation)) applyToObjects(this.objects, operation);
    for (const one of modelOperations([operation], this.#dialect)) this.#apply(one);
  }

  #apply(operation: ModelOperation): void {
    for (const name of requiredCollections(operation)) if (!this.model.has(name)) this.#addUnmanaged(name);
    switch (operation.type) {
      case 'createCollection': {
        const { ifNotExists, temporary } = operation.options?.sqlOptions ?? {};
        if ((ifNotExists || temporary) && this.#unmanaged.has(operation.name)) return;
        this.#removeUnmanaged(operation.name);
        break;
      }
      case 'renameCollection':
        this.#removeUnmanaged(operation.to);
        if (this.#unmanaged.delete(operation.collection)) this.#unmanaged.add(operation.to);
        break;
      case 'dropCollection':
        if (!this.#unmanaged.delete(operation.collection)) break;
        applyInPlace(this.model, { ...operation, cascade: true });
        return;
      case 'addConstraint':
        this.#addConstraint(operation);
        return;
      case 'renameField':
        if (!this.#unmanaged.has(operation.collection)) break;
        this.#renameReferencedField(operation);
        return;
      case 'addField':
      case 'dropField':
      case 'modifyField':
      case 'createIndex':
      case 'dropIndex':
      case 'dropConstraint':
        if (this.#unmanaged.has(operation.collection)) return;
        break;
      default:
        operation satisfies never;
    }
    applyInPlace(this.model, operation);
  }

  #addUnmanaged(name: string): void {
    this.everUnmanaged.add(name);
    this.#unmanaged.add(name);
    this.model.set(name, emptyCollection(name));
  }

  /** The operation was applied, so the name was free: the unmanaged table had been dropped or renamed outside svc. */
  #removeUnmanaged(name: string): void {
    if (this.#unmanaged.delete(name)) this.model.delete(name);
  }

  #addConstraint(operation: AddConstraint): void {
    const { collection, constraint: definition } = operation;
    if (this.#unmanaged.has(collection)) return;
    if (definition.type !== 'foreignKey' || !this.#unmanaged.has(definition.references.table)) {
      applyInPlace(this.model, operation);
      return;
    }
    // The keys of an unmanaged table are unknown, so the foreign key cannot be checked.
    const owner = collectionOf(this.model, collection);
    const constraint = defineConstraint(definition, collection, owner.fields.keys());
    this.model.set(collection, { ...owner, constraints: new Map(owner.constraints).set(constraint.name, constraint) });
  }

  /** Renames a field of an unmanaged table in the foreign keys that reference it. */
  #renameReferencedField({ collection, from, to }: RenameField): void {
    const fields = new Map([[from, { name: from, type: 'text' as const }]]);
    this.model.set(collection, { ...emptyCollection(collection), fields });
    applyInPlace(this.model, { type: 'renameField', collection, from, to });
    this.model.set(collection, emptyCollection(collection));
  }
}

function emptyCollection(name: string): Collection {
  return { name, fields: new Map(), indexes: new Map(), constraints: new Map(), options: {} };
}
