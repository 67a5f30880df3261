import { type ErrorCode, isSvcError, SvcError } from '@svc/sdk';

const MEANINGS: readonly (readonly [said: RegExp, code: ErrorCode, message: string])[] = [
  [/^table .* already exists/s, 'collection_exists', 'The table already exists.'],
  [/^index .* already exists/s, 'index_exists', 'An index of that name already exists.'],
  [/^duplicate column name/, 'field_exists', 'The field already exists.'],
  [/^no such table/, 'collection_unknown', 'The table does not exist.'],
  [/constraint failed/, 'data_violates', 'Rows in the table do not allow the change.'],
  [/database is locked/, 'database_in_use', 'Another process writes into the database for too long.'],
  [/unable to open|not a database/, 'connection_failed', 'The file cannot be opened as a database.'],
  [/readonly/, 'permission_denied', 'The file may not be written.'],
];

const isEngines = (error: unknown): error is Error =>
  error instanceof Error && (error.name === 'SQLite3Error' || ('code' in error && error.code === 'ERR_SQLITE_ERROR'));

const says = (pattern: RegExp) => (error: unknown) => isEngines(error) && pattern.test(error.message);
export const isBusy = says(/database is locked/);
export const isMissing = says(/^no such table/);
export const isDuplicate = says(/^UNIQUE constraint failed/);

export function refusal(error: unknown): unknown {
  if (isSvcError(error) || !isEngines(error)) return error;
  const known = MEANINGS.find(([said]) => said.test(error.message));
  const [, code, message] = known ?? [/./, 'migration_failed' as const, 'SQLite refused a statement.'];
  return new SvcError(code, message, { why: error.message, cause: error });
}
