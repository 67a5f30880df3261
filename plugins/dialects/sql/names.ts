import { primaryKeyFields } from '../../../core/schema/keys.ts';
import type { Collection, Field } from '../../../core/schema/model.ts';

import {
  assertName,
  assertNameFits,
  derivedName,
  derivedNameLimit,
  type NameKind,
  type NameLimit,
} from '../../../core/schema/names.ts';
import type { Grammar } from './grammar.ts';

/** Throws `name_invalid` for a name that the engine truncates or cannot store. */
export function assertIdentifier({ name: engine, names }: Grammar, name: string, kind: NameKind): void {
  assertName(name, kind);
  assertNameFits(engine, names, name, kind);
}

/**
 * Names of the constraints of field flags, derived from table and field. `limit` is `Capabilities.names`, for an engine whose
 * names are shorter than 63 bytes.
 */
export const primaryKeyName = (table: string, limit?: NameLimit): string =>
  derivedName(table, [], 'pkey', limit && derivedNameLimit(limit));
export const uniqueName = (table: string, field: string, limit?: NameLimit): string =>
  derivedName(table, [field], 'key', limit && derivedNameLimit(limit));
export const enumCheckName = (table: string, field: string, limit?: NameLimit): string =>
  derivedName(table, [field], 'check', limit && derivedNameLimit(limit));

/** The constraints of the flags of a field, with the functions that derive their names. */
export function derivedConstraints(
  grammar: Grammar,
  field: Field,
): { readonly type: 'unique' | 'check'; name(table: string, field: string): string }[] {
  const fitted = (nameOf: typeof uniqueName) => (table: string, name: string) => nameOf(table, name, grammar.names);
  return [
    ...(field.unique ? [{ type: 'unique', name: fitted(uniqueName) } as const] : []),
    ...(grammar.enumCheck(field) === undefined ? [] : [{ type: 'check', name: fitted(enumCheckName) } as const]),
  ];
}

/**
 * The relation names of a table in the catalog: its own, its indexes, and its keys, which are indexes as well. This is
 * `NameRules.databaseWideNames` of an engine where they share one namespace.
 */
export function relationNames({ name, fields, indexes, constraints }: Collection, limit?: NameLimit): string[] {
  return [
    name,
    ...indexes.keys(),
    ...(primaryKeyFields({ fields }).length > 0 ? [primaryKeyName(name, limit)] : []),
    ...[...fields.values()].flatMap((field) => (field.unique ? [uniqueName(name, field.name, limit)] : [])),
    ...[...constraints.values()].flatMap((one) =>
      one.type === 'unique' || one.type === 'primaryKey' ? [one.name] : [],
    ),
  ];
}
