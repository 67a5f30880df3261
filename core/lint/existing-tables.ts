import { applyFieldChanges } from '../schema/define-field.ts';
import type { Field } from '../schema/model.ts';
import type { CreateCollection, FieldChanges, ModelOperation } from '../schema/operation.ts';
import type { LintMatch, LintStep } from './rule.ts';

type TableOperation = Exclude<ModelOperation, CreateCollection>;

/** What a rule finds in an operation of one type, on a table that this migration does not create. */
export function forExistingTables<T extends TableOperation['type']>(
  { operation, isNew }: LintStep,
  type: T,
  find: (operation: Extract<TableOperation, { readonly type: T }>) => LintMatch | undefined,
): readonly LintMatch[] {
  if (operation.type !== type || isNew((operation as TableOperation).collection)) return [];
  const match = find(operation as Extract<TableOperation, { readonly type: T }>);
  return match === undefined ? [] : [match];
}

/** A field before and after a change; undefined if the migrations do not say what it was. */
export function changedField(
  { before }: LintStep,
  table: string,
  name: string,
  changes: FieldChanges,
): { readonly from: Field; readonly to: Field } | undefined {
  const from = before.get(table)?.fields.get(name);
  return from && { from, to: applyFieldChanges(from, changes, table) };
}

/** Whether the author of the migration has said that it may destroy data. */
export const allowsLoss = ({ migration: { allow }, operation }: LintStep): boolean =>
  allow?.includes('destructive') === true || (operation.type === 'raw' && operation.destructive === false);
