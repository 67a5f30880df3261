import { isSvcError } from '../errors.ts';
import { change } from '../schema/apply.ts';
import { defineConstraint } from '../schema/define.ts';
import { differences } from '../schema/differences.ts';
import { Draft } from '../schema/draft.ts';
import { collectionOf } from '../schema/lookup.ts';
import type { Collection } from '../schema/model.ts';
import type { AddConstraint, Operation, RenameField } from '../schema/operation.ts';
import type { Migration } from './migration.ts';
import { needs } from './touches.ts';

/** What migrations tell that were all applied, in that order. A refusal names the operation that does not follow. */
export function retold(migrations: readonly Migration[]): Retelling {
  const retelling = new Retelling();
  for (const { tag, up } of migrations) {
    for (const [index, operation] of up.entries()) {
      try {
        retelling.tell(operation);
      } catch (error) {
        throw isSvcError(error) ? error.with({ where: `${tag} up[${index}]`, details: { tag } }) : error;
      }
    }
  }
  return retelling;
}

/** In words, where what was told is not what was expected; a table that svc did not make may be named in one of them only. */
export function apart(expected: Retelling, told: Retelling): string[] {
  const known = [...told.model].filter(([name]) => expected.model.has(name) || !told.foreign.has(name));
  return differences(expected.model, new Map(known));
}

/**
 * The model of operations that were all applied. Tables that they change or point at and did not make are bare names in
 * it: what these are by now only the catalog knows, and what they were when something pointed at them nobody does.
 */
export class Retelling {
  readonly model = new Draft();
  /** Every table that operations changed or pointed at before one made it. */
  readonly found = new Set<string>();
  readonly #foreign = new Set<string>();

  /** The bare names, as renaming has left them. A table of that name that an operation makes later is none of them. */
  get foreign(): ReadonlySet<string> {
    return this.#foreign;
  }

  tell(operation: Operation): void {
    for (const name of needs(operation)) if (!this.model.has(name)) this.#find(name);
    switch (operation.type) {
      case 'createCollection': {
        const { ifNotExists, temporary } = operation.options?.sqlOptions ?? {};
        if ((ifNotExists || temporary) && this.#foreign.has(operation.name)) return;
        this.#forget(operation.name);
        break;
      }
      case 'renameCollection':
        this.#forget(operation.to);
        if (this.#foreign.delete(operation.collection)) this.#foreign.add(operation.to);
        break;
      case 'dropCollection':
        if (!this.#foreign.delete(operation.collection)) break;
        change(this.model, { ...operation, cascade: true });
        return;
      case 'addConstraint':
        this.#constrain(operation);
        return;
      case 'renameField':
        if (!this.#foreign.has(operation.collection)) break;
        this.#follow(operation);
        return;
      case 'raw':
        return;
      default:
        if (this.#foreign.has(operation.collection)) return;
    }
    change(this.model, operation);
  }

  #find(name: string): void {
    this.found.add(name);
    this.#foreign.add(name);
    this.model.set(name, bare(name));
  }

  /** Somebody else dropped or renamed it: its name was free. */
  #forget(name: string): void {
    if (this.#foreign.delete(name)) this.model.delete(name);
  }

  /** A bare name has no key that a foreign key could be checked against. */
  #constrain(operation: AddConstraint): void {
    const { collection, constraint: written } = operation;
    if (this.#foreign.has(collection)) return;
    if (written.type !== 'foreignKey' || !this.#foreign.has(written.references.table)) {
      change(this.model, operation);
      return;
    }
    const own = collectionOf(this.model, collection);
    const constraint = defineConstraint(written, collection, own.fields.keys());
    this.model.set(collection, { ...own, constraints: new Map(own.constraints).set(constraint.name, constraint) });
  }

  /** Foreign keys of ours follow their column. */
  #follow({ collection, from, to }: RenameField): void {
    this.model.set(collection, { ...bare(collection), fields: new Map([[from, { name: from, type: 'text' }]]) });
    change(this.model, { type: 'renameField', collection, from, to });
    this.model.set(collection, bare(collection));
  }
}

function bare(name: string): Collection {
  return { name, fields: new Map(), indexes: new Map(), constraints: new Map(), options: {} };
}
