import type { Field } from '../../../core/schema/model.ts';

/** Whether values that fitted a field may not fit it any more. */
export function narrows(from: Field, to: Field): boolean {
  if (to.required && !from.required) return true;
  if (to.length !== undefined && (from.length === undefined || to.length < from.length)) return true;
  if (to.precision !== undefined && (from.precision !== to.precision || from.scale !== to.scale)) return true;
  if (to.enumValues === undefined) return false;
  return from.enumValues === undefined || from.enumValues.some((value) => !to.enumValues?.includes(value));
}
