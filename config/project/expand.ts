import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../../core/errors.ts';
import { applyAll } from '../../core/schema/apply.ts';
import { applyFieldChanges } from '../../core/schema/define-field.ts';
import { diff } from '../../core/schema/diff.ts';
import { fieldOf } from '../../core/schema/find-or-throw.ts';
import type { Collection, Constraint, Field, Index, SchemaModel } from '../../core/schema/model.ts';
import type { Operation } from '../../core/schema/operation.ts';
import type { Renames } from '../../core/schema/rename/renames.ts';
import type { MigrationFile } from './migration-files.ts';

/** A change in two halves, between which renamed fields have both names. */
interface ExpandedChange {
  readonly expand: readonly Operation[];
  /** The model after `expand`. */
  readonly between: SchemaModel;
  readonly contract: readonly Operation[];
}

/** Adds each renamed field under its new name, in step with the old one, and drops the old one in the other half. */
export function expandRenames(before: SchemaModel, target: SchemaModel, renames: Renames): ExpandedChange {
  assertExpandable(before, target, renames);
  const old = new Map([...renames.fields].map(([table, pairs]) => [table, new Set(pairs.keys())]));
  const between = new Map(
    [...target].map(([table, collection]) => {
      const previous = before.get(table);
      return [table, previous ? betweenOf(previous, collection, renames.fields.get(table), old) : collection];
    }),
  );
  const expand = diff(before, between, { ...renames, fields: new Map() }).map((operation) => {
    if (operation.type !== 'addField') return operation;
    const mirrors = nameBefore(renames, operation.collection, operation.field.name);
    return mirrors === undefined ? operation : { ...operation, mirrors };
  });
  const contract = diff(between, target).map((operation) => {
    if (operation.type !== 'dropField') return operation;
    const mirrors = renames.fields.get(operation.collection)?.get(operation.field);
    return mirrors === undefined ? operation : { ...operation, mirrors };
  });
  return { expand, between: applyAll(expand, before), contract };
}

/** The tag of the migration whose second half these operations are: that was deleted, to be generated again. */
export function contractedBy(operations: readonly Operation[], files: readonly MigrationFile[]): string | undefined {
  const drop = operations.find((operation) => operation.type === 'dropField' && operation.mirrors !== undefined);
  if (drop?.type !== 'dropField') return undefined;
  const { collection, field, mirrors } = drop;
  return files.findLast(({ migration }) =>
    migration.up.some(
      (operation) =>
        operation.type === 'addField' &&
        operation.collection === collection &&
        operation.field.name === mirrors &&
        operation.mirrors === field,
    ),
  )?.tag;
}

function assertExpandable(before: SchemaModel, target: SchemaModel, { collections, fields }: Renames): void {
  const [table] = collections;
  if (table) {
    throw new SvcError('usage', `--expand cannot rename the table "${table[0]}".`, {
      why: 'Only fields can have two names for a time.',
      state: 'Nothing was written.',
      next: [`First rename the table, without --expand: --rename ${table[0]}:${table[1]}`],
    });
  }
  for (const [name, pairs] of fields) {
    for (const [from, to] of pairs) {
      const taken = before.get(name)?.fields.has(to) ? to : target.get(name)?.fields.has(from) ? from : undefined;
      if (taken === undefined) continue;
      throw new SvcError('usage', `--expand cannot rename "${name}.${from}" to "${to}".`, {
        why: `"${name}.${taken}" would be two fields at once.`,
        state: 'Nothing was written.',
        next: ['Give the field a name that is free, or rename it without --expand.'],
      });
    }
  }
  if (fields.size > 0) return;
  throw new SvcError('usage', '--expand needs a field that is renamed.', {
    why: 'It splits a rename in two: a migration that adds the new name, and one that drops the old one.',
    state: 'Nothing was written.',
    next: ['svc db schema generate --rename <table>.<old field>:<new field> --expand'],
  });
}

const nameBefore = ({ fields }: Renames, table: string, name: string): string | undefined =>
  [...(fields.get(table) ?? [])].find(([, to]) => to === name)?.[0];

/** The wanted table with both names. What has to do with the old one is changed in the other half. */
function betweenOf(
  before: Collection,
  target: Collection,
  renamed: ReadonlyMap<string, string> | undefined,
  old: ReadonlyMap<string, ReadonlySet<string>>,
): Collection {
  const fields = new Map(target.fields);
  for (const [from, to] of renamed ?? []) {
    const field = fieldOf(before, from);
    fields.set(from, field);
    fields.set(to, nextToOld(target.name, fieldOf(target, to), field));
  }
  const names = old.get(before.name) ?? new Set();
  const isOld = ({ columns }: Index | Constraint): boolean =>
    columns.some((column) => names.has(typeof column === 'string' ? column : column.name));
  const refersToOld = (constraint: Constraint): boolean =>
    constraint.type === 'foreignKey' &&
    constraint.references.columns.some((column) => old.get(constraint.references.table)?.has(column));
  return {
    ...target,
    fields,
    indexes: merged(before.indexes, target.indexes, isOld),
    constraints: merged(before.constraints, target.constraints, (one) => isOld(one) || refersToOld(one)),
  };
}

/** A default would hide whether a value was written, and the old field vouches for `required` if it has it too. */
const nextToOld = (table: string, field: Field, { required }: Field): Field =>
  applyFieldChanges(field, { default: null, ...(!required && { required: false }) }, table);

function merged<T extends object>(
  before: ReadonlyMap<string, T>,
  target: ReadonlyMap<string, T>,
  isOld: (value: T) => boolean,
): ReadonlyMap<string, T> {
  const all = new Map(target);
  for (const [name, value] of before) {
    const wanted = target.get(name);
    if (isOld(value) && !isDeepStrictEqual(wanted, value)) all.set(name, value);
  }
  return all;
}
