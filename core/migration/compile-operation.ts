import { type Dialect, LARGE_ROWS, type Statement } from '../dialect.ts';
import { isSvcError } from '../errors.ts';
import { mirrorsUnsupported } from '../schema/mirror.ts';
import type { SchemaModel } from '../schema/model.ts';
import type { MigrationOperation, ModelOperation } from '../schema/operation.ts';
import type { CreatedTables } from './affected-collections.ts';
import type { Migration } from './migration.ts';
import type { Target } from './target.ts';

/** What decides how an operation is compiled. */
export interface CompileContext extends Pick<Migration, 'online'> {
  readonly created: CreatedTables;
}

/** The statements of an operation: online ones where the engine has them and the table is large, or the migration wants them. */
export async function compileOperation(
  target: Target,
  operation: ModelOperation,
  model: SchemaModel,
  { online, created }: CompileContext,
): Promise<readonly Statement[]> {
  const { dialect } = target;
  assertMirrors(dialect, operation);
  const statements = dialect.compile(operation, model);
  if (online === false || !('collection' in operation) || created.affectsOnlyCreated(operation)) return statements;
  const onlineStatements = dialect.compileOnline?.(operation, model);
  if (!onlineStatements) return statements;
  return online || (await isLarge(target, created.presentName(operation.collection))) ? onlineStatements : statements;
}

/** Throws `not_supported` for a mirror on an engine that has none. */
export function assertMirrors(
  { name, capabilities }: Pick<Dialect, 'name' | 'capabilities'>,
  operation: MigrationOperation,
): void {
  const isMirrored =
    (operation.type === 'addField' || operation.type === 'dropField') && operation.mirrors !== undefined;
  if (!isMirrored || capabilities.mirrorsFields) return;
  throw mirrorsUnsupported(name);
}

async function isLarge({ connection }: Target, table: string): Promise<boolean> {
  try {
    return (await connection.count(table, LARGE_ROWS + 1)) > LARGE_ROWS;
  } catch (error) {
    // Raw SQL of the same run may create it.
    if (isSvcError(error) && error.code === 'collection_unknown') return false;
    throw error;
  }
}
