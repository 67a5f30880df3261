import type { PreflightFailure } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { isObjectOperation } from '../../../../core/schema/database-object.ts';
import type { MigrationOperation } from '../../../../core/schema/operation.ts';
import type { Schemas } from '../catalog/namespaces.ts';
import { relationOf } from '../compile/names.ts';
import { bareName, tableOf } from '../compile/objects.ts';

/** What a run would create in schemas that the connection does not read: it would look as if it were not there. */
export function unreadableSchemas(
  { home, others }: Schemas,
  operations: readonly MigrationOperation[],
): readonly PreflightFailure[] {
  return operations.flatMap((operation, statement): PreflightFailure[] => {
    if (operation === operations[statement - 1]) return [];
    const path = createdPath(operation);
    const { schema, name } = relationOf(path ?? '');
    if (path === undefined || schema === undefined || others.includes(schema)) return [];
    if (schema !== home) return [{ statement, error: notListed(schema, path) }];
    return name.includes('.') ? [] : [{ statement, error: needless(schema, path, name) }];
  });
}

function createdPath(operation: MigrationOperation): string | undefined {
  if (isObjectOperation(operation)) {
    const { kind, name } = operation;
    return UNQUALIFIED.has(kind) ? undefined : (tableOf(operation) ?? bareName(name));
  }
  if (operation.type === 'createCollection') return operation.name;
  return operation.type === 'renameCollection' ? operation.to : undefined;
}

/** Kinds that are in no schema. */
const UNQUALIFIED: ReadonlySet<string> = new Set(['schema', 'extension', 'cast']);

const notListed = (schema: string, path: string): SvcError =>
  new SvcError('config_invalid', `The schema "${schema}" of "${path}" is not one of the database.`, {
    why: 'svc reads only the schemas that its configuration lists.',
    next: [
      `Add it next to the URL in svc.config: schemas: ['public', '${schema}'], the schema of svc's own tables first.`,
    ],
  });

const needless = (schema: string, path: string, name: string): SvcError =>
  new SvcError('name_invalid', `"${path}" cannot be the name of a table.`, {
    why: `"${schema}" is the schema of all names without one.`,
    next: [`Name it "${name}".`],
  });
