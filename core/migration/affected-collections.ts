import { isObjectOperation, objectKey } from '../schema/database-object.ts';
import type { MigrationOperation } from '../schema/operation.ts';

/** Collections that must exist before the operation. */
export function requiredCollections(operation: MigrationOperation): readonly string[] {
  switch (operation.type) {
    case 'raw':
    case 'createCollection':
    case 'createObject':
    case 'replaceObject':
    case 'dropObject':
      return [];
    case 'addConstraint':
      return operation.constraint.type === 'foreignKey'
        ? [operation.collection, operation.constraint.references.table]
        : [operation.collection];
    case 'dropCollection':
    case 'renameCollection':
    case 'addField':
    case 'dropField':
    case 'renameField':
    case 'modifyField':
    case 'createIndex':
    case 'dropIndex':
    case 'dropConstraint':
      return [operation.collection];
  }
}

/** Collections the operation reads or changes, under their names before and after it. */
export function affectedCollections(operation: MigrationOperation): readonly string[] {
  switch (operation.type) {
    case 'createCollection':
      return [operation.name];
    case 'renameCollection':
      return [operation.collection, operation.to];
    case 'dropCollection':
    case 'addField':
    case 'dropField':
    case 'renameField':
    case 'modifyField':
    case 'createIndex':
    case 'dropIndex':
    case 'addConstraint':
    case 'dropConstraint':
    case 'raw':
    case 'createObject':
    case 'replaceObject':
    case 'dropObject':
      return requiredCollections(operation);
  }
}

/** Fields, indexes and constraints the operation names, as `collection.member`; an object, as `kind/name`. */
export function affectedMembers(operation: MigrationOperation): readonly string[] {
  if (isObjectOperation(operation)) return [objectKey(operation)];
  switch (operation.type) {
    case 'raw':
    case 'createCollection':
    case 'dropCollection':
    case 'renameCollection':
      return [];
    case 'addField':
      return [`${operation.collection}.${operation.field.name}`];
    case 'dropField':
    case 'modifyField':
      return [`${operation.collection}.${operation.field}`];
    case 'renameField':
      return [operation.from, operation.to].map((name) => `${operation.collection}.${name}`);
    case 'createIndex':
      return [operation.index, ...operation.columns.map(({ name }) => name)].map(
        (name) => `${operation.collection}.${name}`,
      );
    case 'dropIndex':
      return [`${operation.collection}.${operation.index}`];
    case 'addConstraint':
    case 'dropConstraint': {
      const { constraint } = operation;
      return [`${operation.collection}.${typeof constraint === 'string' ? constraint : constraint.name}`];
    }
  }
}

/**
 * Tables that the planned migrations create, and the earlier names of others. Created ones stay empty during the run, so a
 * destructive operation on them destroys no data. One that a raw statement mentions no longer counts as created, because the
 * statement may insert rows.
 */
export class CreatedTables {
  readonly #names = new Set<string>();
  /** By their new name, the name of tables before the run. */
  readonly #renamed = new Map<string, string>();

  /** The name of a table before the run. */
  presentName(name: string): string {
    return this.#renamed.get(name) ?? name;
  }

  affectsOnlyCreated(operation: MigrationOperation): boolean {
    const affected = affectedCollections(operation);
    return affected.length > 0 && affected.every((name) => this.#names.has(name));
  }

  /** Records a planned operation. A create without statements found an existing table. */
  record(operation: MigrationOperation, statementCount: number): void {
    switch (operation.type) {
      case 'createCollection':
        if (statementCount > 0) this.#names.add(operation.name);
        return;
      case 'dropCollection':
        this.#names.delete(operation.collection);
        return;
      case 'renameCollection':
        if (this.#names.delete(operation.collection)) this.#names.add(operation.to);
        else this.#renamed.set(operation.to, this.presentName(operation.collection));
        this.#renamed.delete(operation.collection);
        return;
      case 'raw': {
        const text = JSON.stringify(operation).toLowerCase();
        for (const name of this.#names) if (text.includes(name.toLowerCase())) this.#names.delete(name);
        return;
      }
      case 'addField':
      case 'dropField':
      case 'renameField':
      case 'modifyField':
      case 'createIndex':
      case 'dropIndex':
      case 'addConstraint':
      case 'dropConstraint':
      case 'createObject':
      case 'replaceObject':
      case 'dropObject':
        return;
      default:
        operation satisfies never;
    }
  }
}
