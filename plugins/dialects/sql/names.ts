import { primaryKeyFields } from '../../../core/schema/keys.ts';
import type { Collection, Field } from '../../../core/schema/model.ts';

import { assertName, assertNameFits, derivedName, type NameKind } from '../../../core/schema/names.ts';
import type { Grammar } from './grammar.ts';

/** Throws `name_invalid` for a name that the engine truncates or cannot store. */
export function assertIdentifier({ name: engine, names }: Grammar, name: string, kind: NameKind): void {
  assertName(name, kind);
  assertNameFits(engine, names, name, kind);
}

/** Names of the constraints of field flags, derived from table and field. */
export const primaryKeyName = (table: string): string => derivedName(table, [], 'pkey');
export const uniqueName = (table: string, field: string): string => derivedName(table, [field], 'key');
export const enumCheckName = (table: string, field: string): string => derivedName(table, [field], 'check');

/** The constraints of the flags of a field, with the functions that derive their names. */
export function derivedConstraints(
  grammar: Grammar,
  field: Field,
): { readonly type: 'unique' | 'check'; name(table: string, field: string): string }[] {
  return [
    ...(field.unique ? [{ type: 'unique', name: uniqueName } as const] : []),
    ...(grammar.enumCheck(field) === undefined ? [] : [{ type: 'check', name: enumCheckName } as const]),
  ];
}

/** The relation names of a table in the catalog: its own, its indexes, and its keys, which are indexes as well. */
export function relationNames({ name, fields, indexes, constraints }: Collection): string[] {
  return [
    name,
    ...indexes.keys(),
    ...(primaryKeyFields({ fields }).length > 0 ? [primaryKeyName(name)] : []),
    ...[...fields.values()].flatMap((field) => (field.unique ? [uniqueName(name, field.name)] : [])),
    ...[...constraints.values()].flatMap((one) =>
      one.type === 'unique' || one.type === 'primaryKey' ? [one.name] : [],
    ),
  ];
}
