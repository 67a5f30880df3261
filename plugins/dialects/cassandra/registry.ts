import type { RecordDefinition } from '../../../core/records.ts';
import type { Collection, Field, TableOptions } from '../../../core/schema/model.ts';

/** What the catalog cannot say of a table. It is written before a change, and true only where the catalog agrees. */
export interface Registered {
  /** In the order they were added. */
  readonly fields: readonly RegisteredField[];
  /** Those that fit the catalog stand; a rename has two. */
  readonly options: readonly TableOptions[];
  /** The id of the table that is being dropped: one that is made under its name is another one. */
  readonly dropping?: string;
}

export interface RegisteredField extends Field {
  /** It is not there before this column has gone. */
  readonly replaces?: string;
}

export interface RegistryRow {
  readonly table: string;
  readonly definition: Registered;
}

export const registry: RecordDefinition<RegistryRow> = {
  collection: '_svc_registry',
  key: 'table',
  columns: { table: { type: 'string' }, definition: { type: 'json' } },
  indexes: [],
  together: true,
};

export const registered = ({ fields, options }: Pick<Collection, 'fields' | 'options'>): Registered => ({
  fields: [...fields.values()],
  options: [options],
});
