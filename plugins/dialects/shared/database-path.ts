import { stat } from 'node:fs/promises';
import { errorMessage, SvcError, systemErrorCode } from '../../../core/errors.ts';

const A_PART_IS_A_FILE = 'A part of the path is a file.';
const NOT_PERMITTED = 'The user of this process has no permission.';
const REFUSALS: Readonly<Record<string, string>> = {
  ENOTDIR: A_PART_IS_A_FILE,
  EEXIST: A_PART_IS_A_FILE,
  EISDIR: 'The path is a folder.',
  EACCES: NOT_PERMITTED,
  EPERM: NOT_PERMITTED,
  EROFS: 'The file system is read-only.',
  ENOSPC: 'The disk is full.',
};

/** An error of the operating system as `connection_failed` with the path; every other error is returned unchanged. */
export function refusedPath(error: unknown, path: string): unknown {
  const code = systemErrorCode(error);
  if (code === undefined) return error;
  const why = REFUSALS[code];
  return new SvcError('connection_failed', `The operating system refuses the database ${path}.`, {
    why: why === undefined ? errorMessage(error) : `${why} (${errorMessage(error)})`,
    next: ['Correct the path in the URL of the database, or its permissions.'],
    cause: error,
  });
}

/** Whether a path of a database does not exist; throws `connection_failed` if the operating system refuses to say. */
export async function isPathMissing(path: string, database = path): Promise<boolean> {
  try {
    await stat(path);
    return false;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return true;
    throw refusedPath(error, database);
  }
}
