import { lstatSync, readFileSync, readlinkSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { SvcError, systemErrorCode } from '../../core/errors.ts';

/** What is in the place of a file or a folder, and what to do about it. */
interface PathProblem {
  readonly why: string;
  readonly next: string;
}

/**
 * Why a path cannot be used, as far as the file system shows: a link that leads nowhere, a file in place of a folder, or a
 * folder in place of a file. `code` is the error of the system.
 */
export function pathProblem(path: string, code: string | undefined): PathProblem | undefined {
  const parent = dirname(path);
  const above = parent === path ? undefined : pathProblem(parent, 'ENOTDIR');
  if (above) return above;
  const found = statsOf(() => lstatSync(path));
  if (!found) return undefined;
  const target = found.isSymbolicLink() ? statsOf(() => statSync(path)) : found;
  if (!target) {
    return {
      why: `${path} is a link to ${readlinkSync(path)}, which does not exist.`,
      next: 'Create what the link leads to, or remove the link. Then run the command again.',
    };
  }
  if (code === 'EISDIR' && target.isDirectory()) {
    return {
      why: `${path} is a folder, and svc needs a file there.`,
      next: 'Move the folder away, then run the command again.',
    };
  }
  if ((code === 'ENOTDIR' || code === 'EEXIST') && !target.isDirectory()) {
    return {
      why: `${path} is a file, and svc needs a folder there.`,
      next: 'Move the file away, then run the command again.',
    };
  }
  return undefined;
}

/** Undefined if there is nothing at the path, or nothing that can be looked at. */
function statsOf(read: () => Stats): Stats | undefined {
  try {
    return read();
  } catch (error) {
    if (systemErrorCode(error) !== undefined) return undefined;
    throw error;
  }
}

/** Whether the error says that nothing is at the path. A link that leads nowhere is something. */
export function isAbsent(path: string, error: unknown): boolean {
  return systemErrorCode(error) === 'ENOENT' && pathProblem(path, 'ENOENT') === undefined;
}

/** The error of the file system as `file_failed`; undefined for another error. `path`: for a read, whose error has none. */
export function fileError(
  error: unknown,
  message: string,
  { state, where, path: known }: { readonly state?: string; readonly where?: string; readonly path?: string } = {},
): SvcError | undefined {
  if (!(error instanceof Error) || !('syscall' in error)) return undefined;
  const paths = [known, pathIn(error, 'path'), pathIn(error, 'dest')].filter((path) => path !== undefined);
  const code = systemErrorCode(error);
  const [problem] = paths.flatMap((path) => pathProblem(path, code) ?? []);
  const place = where ?? paths[0];
  return new SvcError('file_failed', message, {
    why: problem?.why ?? error.message,
    next: [problem?.next ?? 'Check the permissions and the free space, then run the command again.'],
    ...(state !== undefined && { state }),
    ...(place !== undefined && { where: place }),
    cause: error,
  });
}

/** The text of a file. A folder in its place is `file_failed`, because the error of the system does not name it. */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) !== 'EISDIR') throw error;
    throw fileError(error, 'A file could not be read.', { path }) ?? error;
  }
}

function pathIn(error: Error, key: 'path' | 'dest'): string | undefined {
  const value = (error as { readonly path?: unknown; readonly dest?: unknown })[key];
  return typeof value === 'string' ? value : undefined;
}
