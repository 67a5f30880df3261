import type { PreflightFailure } from '../../../../core/dialect.ts';
import { isObjectOperation } from '../../../../core/schema/database-object.ts';
import { listedSchemaError } from '../../../../core/schema/listed-schemas.ts';
import type { MigrationOperation } from '../../../../core/schema/operation.ts';
import type { Schemas } from '../catalog/namespaces.ts';
import { bareName, tableOf } from '../compile/objects.ts';

/** What a run would change in schemas that the connection does not read: it would look as if it were not there. */
export function unreadableSchemas(
  { home, others }: Schemas,
  operations: readonly MigrationOperation[],
): readonly PreflightFailure[] {
  return operations.flatMap((operation, statement): PreflightFailure[] => {
    if (operation === operations[statement - 1]) return [];
    const error = pathsIn(operation)
      .map((path) => listedSchemaError([home, ...others], path))
      .find((one) => one !== undefined);
    return error ? [{ statement, error }] : [];
  });
}

function pathsIn(operation: MigrationOperation): readonly string[] {
  if (isObjectOperation(operation)) {
    const { kind, name } = operation;
    return UNQUALIFIED.has(kind) ? [] : [tableOf(operation) ?? bareName(name)];
  }
  if (operation.type === 'raw') return [];
  if (operation.type === 'createCollection') return [operation.name];
  return operation.type === 'renameCollection' ? [operation.collection, operation.to] : [operation.collection];
}

/** Kinds that are in no schema. */
const UNQUALIFIED: ReadonlySet<string> = new Set(['schema', 'extension', 'cast', 'grants']);
