import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, extname, join, relative, sep } from 'node:path';
import { isSvcError, SvcError, systemErrorCode } from '../../core/errors.ts';
import { isPlainObject, tryParseJson } from '../../core/json.ts';
import { checksum, type Migration } from '../../core/migration/migration.ts';
import type { DefinedMigration } from '../../core/migration/reconcile.ts';
import { isTag, nameOfTag } from '../../core/migration/tag.ts';
import { migrationProblems } from '../../core/migration/validate-migration.ts';
import type { Path } from '../../core/validate-shape.ts';
import { version } from '../../core/version.ts';
import { cacheFile, digest, readCache, writeCache } from '../load/disk-cache.ts';
import type { LoadSdk } from '../load/import-module.ts';
import { isAbsent } from '../load/path-problem.ts';
import { formatJson, type JsonSource, locationOf, parseAcceptedJson, parseJson } from './json-text.ts';

/** The folder of a database's migrations, relative to the folder of the configuration. */
function migrationsFolder(db: string): string {
  return `svc/database/migrations/${db}`;
}

export function migrationPath(db: string, tag: string): string {
  return `${migrationsFolder(db)}/${tag}.json`;
}

const PACKAGE = 'node_modules/@svc/sdk';

/** The path from a migration file to the package's JSON Schema. In a workspace the package is in a parent folder. */
function schemaReference(root: string): string {
  const up = (folder: string): string | undefined => {
    if (existsSync(join(folder, PACKAGE))) return folder;
    return dirname(folder) === folder ? undefined : up(dirname(folder));
  };
  const installed = up(root) ?? root;
  const path = relative(join(root, migrationsFolder('main')), join(installed, PACKAGE, 'dist/schema.json'));
  return path.replaceAll(sep, '/');
}

export function formatMigration(root: string, migration: Migration): string {
  return formatJson({ $schema: schemaReference(root), ...migration });
}

const EXTENSIONS: ReadonlySet<string> = new Set(['.json', '.ts', '.js', '.mjs']);

export type MigrationFile = Required<DefinedMigration>;

/** Lists the migration files of a database in tag order. Throws `tag_invalid` or `tag_taken`. */
export function migrationFiles(root: string, db: string): { readonly tag: string; readonly file: string }[] {
  const folder = migrationsFolder(db);
  const files = new Map<string, string>();
  for (const name of readFolder(join(root, folder))) {
    // Some editors and systems write names in upper case.
    const extension = extname(name).replace(/^\.json$/i, '.json');
    if (name.startsWith('.') || name.endsWith('.d.ts') || !EXTENSIONS.has(extension)) continue;
    const tag = name.slice(0, -extension.length);
    const file = `${folder}/${name}`;
    assertTag(tag, file, files.get(tag));
    files.set(tag, file);
  }
  return [...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([tag, file]) => ({ tag, file }));
}

/**
 * Reads the migrations of a database in tag order. A JSON file whose text was valid before is parsed on first use.
 * Throws `migration_invalid` with the location, and the errors of `migrationFiles`.
 */
export async function readMigrations(
  root: string,
  db: string,
  loadSdk: LoadSdk,
  loadLimitMs?: number,
): Promise<MigrationFile[]> {
  const cache = new ChecksumCache(root, migrationsFolder(db));
  const found: MigrationFile[] = [];
  for (const { tag, file } of migrationFiles(root, db)) {
    const path = `${root}${sep}${file}`;
    if (!/\.json$/i.test(file)) {
      found.push(
        withChecksum(file, await assertMigration(await loadMigration(path, file, loadSdk, loadLimitMs), file, tag)),
      );
      continue;
    }
    const source: JsonSource = { file, text: readText(path, file), code: 'migration_invalid' };
    const checksum = cache.get(tag, source.text);
    if (checksum !== undefined) {
      found.push(new CachedMigration(tag, checksum, source));
      continue;
    }
    const migration = withChecksum(file, await assertMigration(await parseJson(source), file, tag, source));
    cache.set(tag, source.text, migration.checksum);
    found.push(migration);
  }
  cache.save();
  return found;
}

function withChecksum(file: string, migration: Migration): MigrationFile {
  return { tag: migration.tag, file, checksum: checksum(migration), migration };
}

/** A file whose text was already validated. */
class CachedMigration implements MigrationFile {
  readonly tag: string;
  readonly checksum: string;
  readonly #source: JsonSource;
  #migration: Migration | undefined;

  constructor(tag: string, checksum: string, source: JsonSource) {
    this.tag = tag;
    this.checksum = checksum;
    this.#source = source;
  }

  get file(): string {
    return this.#source.file;
  }

  get migration(): Migration {
    this.#migration ??= withName(this.tag, parseAcceptedJson(this.#source.text) as WrittenMigration);
    return this.#migration;
  }
}

function readText(path: string, file: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) !== 'EISDIR') throw error;
    throw new SvcError('migration_invalid', `${file} is a folder, not a migration file.`, {
      next: ['Move it out of the migrations folder, or rename it without ".json".'],
      where: file,
      cause: error,
    });
  }
}

function readFolder(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isAbsent(folder, error)) return [];
    throw error;
  }
}

function assertTag(tag: string, file: string, taken: string | undefined): void {
  if (taken !== undefined) {
    throw new SvcError('tag_taken', `Two files define the migration "${tag}".`, {
      why: `${taken} and ${file} have the same name.`,
      next: ['Remove or rename one of the two.'],
      where: file,
    });
  }
  if (!isTag(tag)) {
    throw new SvcError('tag_invalid', `"${tag}" is not a valid migration tag.`, {
      why: 'A tag has 1 to 128 characters of A-Z a-z 0-9 _ . - and does not start with a dot.',
      next: ['Rename the file, and change the tag in it.'],
      where: file,
    });
  }
}

async function loadMigration(path: string, file: string, loadSdk: LoadSdk, limitMs?: number): Promise<unknown> {
  const { loadModule } = await import('../load/import-module.ts');
  try {
    return await loadModule(path, loadSdk, limitMs);
  } catch (error) {
    if (isSvcError(error)) throw error.where === undefined ? error.with({ where: file }) : error;
    throw new SvcError('migration_invalid', `${file} could not be loaded.`, {
      why: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
      next: ['Fix the error in the file.'],
      where: file,
      cause: error,
    });
  }
}

/** In a file the name is optional; its default comes from the tag. */
type WrittenMigration = Omit<Migration, 'name'> & { readonly name?: string };

function withName(tag: string, migration: WrittenMigration): Migration {
  return { name: nameOfTag(tag), ...migration };
}

async function assertMigration(value: unknown, file: string, tag: string, source?: JsonSource): Promise<Migration> {
  const found = migrationProblems(value);
  const declaredTag = (value as Partial<Migration> | undefined)?.tag;
  if (found.length === 0 && declaredTag === tag) return withName(tag, value as WrittenMigration);
  const [first] = found;
  const path: Path = first === undefined ? ['tag'] : pathInProblem(first);
  throw new SvcError('migration_invalid', `${file} is not a valid migration.`, {
    why: found.slice(0, 3).join(' ') || `Its tag is "${declaredTag}", but its file name is "${tag}".`,
    next: [
      first === undefined
        ? 'Use the same tag in the file and in its name.'
        : source
          ? 'Fix the problems listed above.'
          : 'Export a migration as the default export: migration(tag)…build().',
    ],
    where: source ? await locationOf(source, path) : file,
    ...(found.length > 0 && { details: { problems: found } }),
  });
}

/** Extracts a path from a problem such as `up[2] fields[0].type is missing.`; words after the path are harmless. */
function pathInProblem(problem: string): Path {
  const steps = [...problem.matchAll(/"([^"]+)"|([A-Za-z]\w*)|\[(\d+)\]/g)].slice(0, 12);
  return steps.map(([, quoted, word, index]) => quoted ?? word ?? Number(index));
}

type CacheEntry = readonly [digest: string, checksum: string];

/**
 * The checksums of valid migration files, by content rather than by modification time. Entries of another SDK version
 * are ignored.
 */
class ChecksumCache {
  readonly #file: string | undefined;
  readonly #stored: ReadonlyMap<string, CacheEntry>;
  readonly #used = new Map<string, CacheEntry>();
  #changed = false;

  constructor(root: string, folder: string) {
    this.#file = cacheFile(root, `${digest(`${root}\n${folder}`)}.json`);
    this.#stored = parseCache(readCache(this.#file));
  }

  /** Returns the checksum of a migration, if exactly this text was validated for this tag. */
  get(tag: string, text: string): string | undefined {
    const known = this.#stored.get(tag);
    if (known?.[0] !== textDigest(text)) return undefined;
    this.#used.set(tag, known);
    return known[1];
  }

  set(tag: string, text: string, checksum: string): void {
    this.#used.set(tag, [textDigest(text), checksum]);
    this.#changed = true;
  }

  /** Drops entries that were not read: their files no longer exist. */
  save(): void {
    if (!this.#changed && this.#used.size === this.#stored.size) return;
    writeCache(this.#file, JSON.stringify({ version, texts: [...this.#used] }));
  }
}

function parseCache(text: Buffer | undefined): ReadonlyMap<string, CacheEntry> {
  if (text === undefined) return new Map();
  const value = tryParseJson(text.toString());
  // A damaged cache is rebuilt.
  return new Map(isPlainObject(value) && value.version === version && isEntries(value.texts) ? value.texts : []);
}

function isEntries(value: unknown): value is readonly [string, CacheEntry][] {
  return Array.isArray(value) && value.every((entry) => Array.isArray(entry) && Array.isArray(entry[1]));
}

function textDigest(text: string): string {
  return hash('sha256', text, 'base64');
}
