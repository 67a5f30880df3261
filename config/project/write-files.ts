import { existsSync, linkSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isSvcError, SvcError, systemErrorCode } from '../../core/errors.ts';
import { fileError } from '../load/path-problem.ts';

export interface NewFile {
  /** Relative to the folder of the configuration. */
  readonly file: string;
  readonly text: string;
}

/** Writes all files or none, each atomically. Never overwrites: throws `file_exists`. */
export function writeNewFiles(root: string, files: readonly NewFile[]): void {
  for (const { file } of files) if (existsSync(join(root, file))) throw fileExistsError(file);
  const temporaries = files.map(({ file, text }) => ({
    file,
    text,
    path: join(root, file),
    temporary: temporaryPath(join(root, file)),
  }));
  const placed: string[] = [];
  try {
    for (const { path, temporary, text } of temporaries) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(temporary, text, { flag: 'wx' });
    }
    for (const { file, path, temporary } of temporaries) {
      moveIntoPlace(temporary, path, file);
      placed.push(path);
    }
  } catch (error) {
    for (const path of placed) rmSync(path, { force: true });
    throw writeError(error, files[0]?.file, 'Nothing was written.');
  } finally {
    for (const { temporary } of temporaries) rmSync(temporary, { force: true });
  }
}

/** Replaces a file atomically. */
export function replaceFile(root: string, { file, text }: NewFile): void {
  const path = join(root, file);
  const temporary = temporaryPath(path);
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(temporary, text, { flag: 'wx' });
    renameSync(temporary, path);
  } catch (error) {
    throw writeError(error, file, 'The file is unchanged.');
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Starts with a dot, so that the file of a killed process is not read as a migration. */
function temporaryPath(path: string): string {
  return join(dirname(path), `.${process.pid}.${path.slice(dirname(path).length + 1)}.draft`);
}

/** Unlike a rename, a hard link never replaces a file that another process created in the meantime. */
function moveIntoPlace(temporary: string, path: string, file: string): void {
  try {
    linkSync(temporary, path);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'EEXIST') throw fileExistsError(file);
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error;
    renameSync(temporary, path); // The file system has no hard links.
  }
}

function writeError(error: unknown, where: string | undefined, state: string): unknown {
  if (isSvcError(error)) return error;
  return fileError(error, 'The file could not be written.', { state, ...(where !== undefined && { where }) }) ?? error;
}

function fileExistsError(file: string): SvcError {
  return new SvcError('file_exists', `${file} already exists.`, {
    state: 'Nothing was written.',
    next: ['Run the command again, or move the file away.'],
    where: file,
  });
}
