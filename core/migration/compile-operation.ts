import type { Statement } from '../dialect.ts';
import { isSvcError } from '../errors.ts';
import type { SchemaModel } from '../schema/model.ts';
import type { ModelOperation } from '../schema/operation.ts';
import type { CreatedTables } from './affected-collections.ts';
import type { Migration } from './migration.ts';
import type { Target } from './target.ts';

/** A table with more rows is changed by statements during which it can be read and written. */
export const LARGE_ROWS = 10_000;

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
  const statements = dialect.compile(operation, model);
  if (online === false || !('collection' in operation) || created.affectsOnlyCreated(operation)) return statements;
  const onlineStatements = dialect.compileOnline?.(operation, model);
  if (!onlineStatements) return statements;
  return online || (await isLarge(target, created.presentName(operation.collection))) ? onlineStatements : statements;
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
