import type { FieldType } from '../../../core/schema/model.ts';

/** The types whose values are any text, or one of a list. */
export const TEXT_TYPES: ReadonlySet<FieldType> = new Set(['string', 'text', 'enum']);
