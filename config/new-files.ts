import { existsSync, linkSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isSvcError, SvcError } from '../core/errors.ts';

export interface NewFile {
  /** From the folder of the configuration. */
  readonly file: string;
  readonly text: string;
}

/** Writes all of the files or none, each whole or not at all. A file that is there is never overwritten: `file_exists`. */
export function writeNewFiles(root: string, files: readonly NewFile[]): void {
  for (const { file } of files) if (existsSync(join(root, file))) throw fileExists(file);
  const drafts = files.map(({ file, text }) => ({
    file,
    text,
    path: join(root, file),
    draft: draftOf(join(root, file)),
  }));
  const placed: string[] = [];
  try {
    for (const { path, draft, text } of drafts) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(draft, text, { flag: 'wx' });
    }
    for (const { file, path, draft } of drafts) {
      place(draft, path, file);
      placed.push(path);
    }
  } catch (error) {
    for (const path of placed) rmSync(path, { force: true });
    throw writeFailed(error, files[0]?.file, 'Nothing was written.');
  } finally {
    for (const { draft } of drafts) rmSync(draft, { force: true });
  }
}

/** Replaces a file in one step: a reader sees the old text or the new one. */
export function replaceFile(root: string, { file, text }: NewFile): void {
  const path = join(root, file);
  const draft = draftOf(path);
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(draft, text, { flag: 'wx' });
    renameSync(draft, path);
  } catch (error) {
    throw writeFailed(error, file, 'The file is as it was.');
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Begins with a dot: what a killed process leaves behind is not taken for a migration. */
function draftOf(path: string): string {
  return join(dirname(path), `.${process.pid}.${path.slice(dirname(path).length + 1)}.draft`);
}

/** A hard link, unlike a rename, never replaces what somebody else put there meanwhile. */
function place(draft: string, path: string, file: string): void {
  try {
    linkSync(draft, path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST') throw fileExists(file);
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error;
    renameSync(draft, path); // a file system without hard links
  }
}

/** The file system's own words where it is what refused: no space, no permission. */
function writeFailed(error: unknown, where: string | undefined, state: string): unknown {
  if (isSvcError(error) || !(error instanceof Error) || !('syscall' in error)) return error;
  return new SvcError('file_failed', 'The file system refused to write.', {
    why: error.message,
    state,
    next: ['Make room there, or give the permission, then run the command again.'],
    ...(where !== undefined && { where }),
    cause: error,
  });
}

function fileExists(file: string): SvcError {
  return new SvcError('file_exists', `${file} exists already.`, {
    state: 'Nothing was written.',
    next: ['Run the command again, or move the file away.'],
    where: file,
  });
}
