import type { Dialect } from '../../core/dialect.ts';
import { listedSchemaError } from '../../core/schema/listed-schemas.ts';
import type { Operation } from '../../core/schema/operation.ts';
import type { DatabaseConfig } from '../define.ts';

/** Throws `config_invalid` for a new table in a schema that the database does not list, and `name_invalid` for a needless schema. */
export function assertListedSchemas(
  { capabilities: { names } }: Dialect,
  { schema, schemas = [] }: Pick<DatabaseConfig, 'schema' | 'schemas'>,
  operations: readonly Operation[],
): void {
  if (!names.schemas) return;
  const home = schema ?? schemas[0] ?? 'public';
  const listed = [home, ...schemas.filter((one) => one !== home)];
  for (const operation of operations) {
    const name = newName(operation);
    const error = name === undefined ? undefined : listedSchemaError(listed, name);
    if (error) throw error;
  }
}

function newName(operation: Operation): string | undefined {
  if (operation.type === 'createCollection') return operation.name;
  return operation.type === 'renameCollection' ? operation.to : undefined;
}
