import { defineCollection } from '../../../../core/schema/define.ts';
import type { Collection, Constraint, Field, SchemaModel } from '../../../../core/schema/model.ts';
import type { Operation } from '../../../../core/schema/operation.ts';
import { isIdentity } from './modify-field.ts';

/** Locks of a key: its index and its constraint. */
const KEY_LOCKS = 2;
/** The table and its row type. */
const TABLE_LOCKS = 2;
/** The table for values beyond two kilobytes, and its index. */
const TOAST_LOCKS = 2;

/** The locks that an operation adds to its transaction, at least: one for each catalog object. */
export function countLocks(operation: Operation, before: SchemaModel): number {
  switch (operation.type) {
    case 'createCollection':
      return locksOfTable(defineCollection(operation));
    case 'dropCollection': {
      const dropped = before.get(operation.collection);
      return dropped ? locksOfTable(dropped) : TABLE_LOCKS;
    }
    case 'addConstraint':
      return locksOfConstraint(operation.constraint);
    case 'raw':
      return 0;
    default:
      return 1;
  }
}

function locksOfTable({ fields, indexes, constraints }: Collection): number {
  const all = [...fields.values()];
  const keys = all.filter(({ unique }) => unique).length + (all.some(({ primaryKey }) => primaryKey) ? 1 : 0);
  const ofConstraints = [...constraints.values()].reduce((sum, one) => sum + locksOfConstraint(one), 0);
  const toast = all.some(mayBeLong) ? TOAST_LOCKS : 0;
  return TABLE_LOCKS + keys * KEY_LOCKS + all.filter(isIdentity).length + toast + indexes.size + ofConstraints;
}

function locksOfConstraint({ type }: Pick<Constraint, 'type'>): number {
  if (type === 'check') return 0;
  return type === 'foreignKey' ? 1 : KEY_LOCKS;
}

const LONG_TYPES: ReadonlySet<string> = new Set(['text', 'json', 'enum', 'array', 'binary', 'blob']);

const mayBeLong = ({ type }: Field): boolean => LONG_TYPES.has(type);
