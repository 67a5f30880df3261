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
  const { collection } = operation;
  return online || (await isLarge(target, created.presentName(collection), collection)) ? onlineStatements : statements;
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

/** `renamed` is its name after the renames of the run, of which a run that failed may have done some. */
async function isLarge(target: Target, table: string, renamed: string): Promise<boolean> {
  try {
    return (await target.connection.count(table, LARGE_ROWS + 1)) > LARGE_ROWS;
  } catch (error) {
    if (!isSvcError(error) || error.code !== 'collection_unknown') throw error;
    // Raw SQL of the same run may create it.
    return renamed === table ? false : isLarge(target, renamed, renamed);
  }
}
