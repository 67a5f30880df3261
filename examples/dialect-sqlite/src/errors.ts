import { type ErrorCode, isSvcError, SvcError } from '@svc/sdk';

const CODES: readonly (readonly [pattern: RegExp, code: ErrorCode, message: string])[] = [
  [/^table .* already exists/s, 'collection_exists', 'The table already exists.'],
  [/^index .* already exists/s, 'index_exists', 'An index with that name already exists.'],
  [/^duplicate column name/, 'field_exists', 'The field already exists.'],
  [/^no such table/, 'collection_unknown', 'The table does not exist.'],
  [/constraint failed/, 'data_violates', 'Rows in the table do not allow the change.'],
  [/database is locked/, 'database_in_use', 'Another process has been writing to the database for too long.'],
  [/unable to open|not a database/, 'connection_failed', 'The file cannot be opened as a database.'],
  [/readonly/, 'permission_denied', 'The file is read-only.'],
];

const isSqliteError = (error: unknown): error is Error =>
  error instanceof Error && (error.name === 'SQLite3Error' || ('code' in error && error.code === 'ERR_SQLITE_ERROR'));

const hasMessage = (pattern: RegExp) => (error: unknown) => isSqliteError(error) && pattern.test(error.message);
export const isBusy = hasMessage(/database is locked/);
export const isMissing = hasMessage(/^no such table/);
export const isDuplicate = hasMessage(/^UNIQUE constraint failed/);

export function toSvcError(error: unknown): unknown {
  if (isSvcError(error) || !isSqliteError(error)) return error;
  const known = CODES.find(([pattern]) => pattern.test(error.message));
  const [, code, message] = known ?? [/./, 'migration_failed' as const, 'SQLite rejected a statement.'];
  return new SvcError(code, message, { why: error.message, cause: error });
}
