import { type Dirent, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Dialect } from '../../core/dialect.ts';
import { isSvcError, SvcError } from '../../core/errors.ts';
import { assertKind, compileObject } from '../../core/migration/objects.ts';
import { nearest } from '../../core/nearest.ts';
import { type DatabaseObject, type ObjectModel, objectKey, objectModel } from '../../core/schema/database-object.ts';
import { isAbsent, readText } from '../load/path-problem.ts';
import { type NewFile, replaceFile } from './write-files.ts';

/** The folder of a database's objects, relative to the folder of the configuration. */
const objectsFolder = (db: string): string => `${OBJECTS}/${db}`;

const OBJECTS = 'svc/database/objects';
/** In the name of a folder with copies. */
const BEFORE = '.before_';

const SQL = { extension: '.sql', end: ';' };

const fileFormat = ({ objects }: Dialect) => objects?.file ?? SQL;

export function objectFile(db: string, dialect: Dialect, { kind, name, definition }: DatabaseObject): NewFile {
  const { extension, end } = fileFormat(dialect);
  return { file: `${objectsFolder(db)}/${kind}/${fileName(name)}${extension}`, text: `${definition}${end}\n` };
}

/**
 * Reads the objects of a database: a file each, `<kind>/<name>.sql`, or with the ending of the engine. Throws
 * `schema_invalid`, with the file, for a kind that the engine does not have, or for a text that does not create the object.
 */
export function readObjectFiles(root: string, db: string, dialect: Dialect): ObjectModel {
  const folder = objectsFolder(db);
  const { extension } = fileFormat(dialect);
  assertPlaced(filesIn(join(root, folder), extension), folder, dialect);
  const objects = foldersIn(join(root, folder)).flatMap((kind) => {
    assertKnownKind(dialect, kind, `${folder}/${kind}`);
    return filesIn(join(root, folder, kind), extension).map((file) =>
      readObject(root, `${folder}/${kind}/${file}`, kind, dialect),
    );
  });
  return objectModel(objects);
}

function readObject(root: string, file: string, kind: string, dialect: Dialect): DatabaseObject {
  const name = nameOfFile(file.slice(file.lastIndexOf('/') + 1, -fileFormat(dialect).extension.length));
  const definition = definitionOf(readText(join(root, file)));
  try {
    compileObject(dialect, { type: 'createObject', kind, name, definition });
  } catch (error) {
    if (!isSvcError(error)) throw error;
    throw new SvcError('schema_invalid', `${file} does not create the ${kind.replaceAll('_', ' ')} "${name}".`, {
      why: error.why ?? error.message,
      state: 'Nothing was written.',
      next: error.next,
      where: file,
      cause: error,
    });
  }
  return { kind, name, definition };
}

function nameOfFile(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // A percent sign that a person wrote.
  }
}

function assertPlaced([file]: readonly string[], folder: string, { objects }: Dialect): void {
  if (file === undefined) return;
  throw new SvcError('schema_invalid', `${folder}/${file} is not in a folder of its kind.`, {
    state: 'Nothing was written.',
    next: [`Move it to one of ${folder}/<kind>: ${objects?.kinds.join(', ') ?? 'this dialect has none'}.`],
    where: `${folder}/${file}`,
  });
}

/** Throws `database_unknown` for files of objects of a database that is not configured. */
export function assertObjectFolders(root: string, databases: readonly string[]): void {
  const unknown = foldersIn(join(root, OBJECTS)).find((db) => !databases.includes(db) && !db.includes(BEFORE));
  if (unknown === undefined) return;
  const near = nearest(unknown, databases);
  throw new SvcError(
    'database_unknown',
    `${OBJECTS}/${unknown} has objects of "${unknown}", which is not configured.`,
    {
      why: `Configured: ${databases.join(', ') || 'none'}.`,
      state: 'Nothing was written.',
      next: [near === undefined ? `Rename the folder to ${databases.join(' or ')}.` : `Did you mean "${near}"?`],
      where: `${OBJECTS}/${unknown}`,
    },
  );
}

function assertKnownKind(dialect: Dialect, kind: string, where: string): void {
  try {
    assertKind(dialect, { kind, name: '*' });
  } catch (error) {
    if (!isSvcError(error)) throw error;
    const near = nearest(kind, dialect.objects?.kinds ?? []);
    throw new SvcError('schema_invalid', `The folder ${where} is not a kind of object of ${dialect.name}.`, {
      why: error.why ?? error.message,
      state: 'Nothing was written.',
      next: [near === undefined ? 'Move its files to a folder of that name.' : `Did you mean "${near}"?`],
      where,
    });
  }
}

/** Writes the files of objects that are new or different, and removes those of objects that are no more. */
export function writeObjectFiles(
  root: string,
  db: string,
  { dialect, before, after }: { readonly dialect: Dialect; readonly before: ObjectModel; readonly after: ObjectModel },
): string[] {
  const written: string[] = [];
  for (const [key, object] of after) {
    if (before.get(key)?.definition === object.definition) continue;
    const file = objectFile(db, dialect, object);
    replaceFile(root, file);
    written.push(file.file);
  }
  for (const [key, object] of before)
    if (!after.has(key)) rmSync(join(root, objectFile(db, dialect, object).file), { force: true });
  return written;
}

/** Copies of the files that `writeObjectFiles` would change or remove and whose text no migration file has. */
export function backupObjectFiles(
  db: string,
  stamp: string,
  {
    dialect,
    files,
    after,
    recorded,
  }: {
    readonly dialect: Dialect;
    readonly files: ObjectModel;
    readonly after: ObjectModel;
    readonly recorded: ObjectModel;
  },
): NewFile[] {
  return [...files.values()].flatMap((object) => {
    const isKept = [after, recorded].some((model) => model.get(objectKey(object))?.definition === object.definition);
    return isKept ? [] : [objectFile(`${db}${BEFORE}${stamp}`, dialect, object)];
  });
}

/** The text of a file as the migrations have it. */
const definitionOf = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .trim()
    .replace(/(?:\s*;)+$/, '');

/** Characters that a file system or a shell would not take as they are, as `%2F`. */
const fileName = (name: string): string =>
  name.replace(/[^\p{L}\p{N}_.,()[\] -]|^\./gu, (character) =>
    [...new TextEncoder().encode(character)]
      .map((byte) => `%${byte.toString(16).padStart(2, '0').toUpperCase()}`)
      .join(''),
  );

function foldersIn(folder: string): readonly string[] {
  const entries = entriesIn(folder);
  return entries.flatMap((one) => (one.isDirectory() ? [one.name] : []));
}

/** Without the folder, none. A link that leads nowhere is an error: its objects would count as dropped. */
function entriesIn(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (isAbsent(folder, error)) return [];
    throw error;
  }
}

function filesIn(folder: string, extension: string): readonly string[] {
  return entriesIn(folder)
    .map(({ name }) => name)
    .filter((name) => name.endsWith(extension) && !name.startsWith('.'))
    .sort();
}
