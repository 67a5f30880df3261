import type { Collection, Field } from '../../core/schema/model.ts';
import { checkName, checkNameFits, derivedName, type NameKind } from '../../core/schema/names.ts';
import type { Grammar } from './grammar.ts';

/** Refuses a name that the engine would cut or cannot store. */
export function checkIdentifier({ name: engine, names }: Grammar, name: string, kind: NameKind): void {
  checkName(name, kind);
  checkNameFits(engine, names, name, kind);
}

/** Names of the constraints that flags of fields stand for: always a function of the model. */
export const primaryKeyName = (table: string): string => derivedName(table, [], 'pkey');
export const uniqueName = (table: string, field: string): string => derivedName(table, [field], 'key');
export const enumCheckName = (table: string, field: string): string => derivedName(table, [field], 'check');

/** Fields of the primary key that flags declare, in the order of the columns. */
export function primaryKeyFields(collection: Pick<Collection, 'fields'>): string[] {
  return [...collection.fields.values()].filter((field) => field.primaryKey).map((field) => field.name);
}

/** Constraints that follow from the flags of one field, by the name they have in a table. */
export function derivedConstraints(
  grammar: Grammar,
  field: Field,
): { readonly type: 'unique' | 'check'; name(table: string, field: string): string }[] {
  return [
    ...(field.unique ? [{ type: 'unique', name: uniqueName } as const] : []),
    ...(grammar.enumCheck(field) === undefined ? [] : [{ type: 'check', name: enumCheckName } as const]),
  ];
}

/** What a table has in the catalog under a name of its own: itself, its indexes, and its keys, which are indexes too. */
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
