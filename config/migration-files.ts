import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, extname, join, relative, sep } from 'node:path';
import { isSvcError, SvcError } from '../core/errors.ts';
import { checksum } from '../core/migration/checksum.ts';
import type { Migration } from '../core/migration/migration.ts';
import { problems } from '../core/migration/problems.ts';
import type { Defined } from '../core/migration/reconcile.ts';
import { isTag, nameOfTag } from '../core/migration/tag.ts';
import type { Path } from '../core/schema/shape.ts';
import { jsonText } from './json-layout.ts';
import { type JsonText, parseJsonText, placeOf, plainJson } from './json-text.ts';
import { KnownTexts } from './known-texts.ts';

/** Where the migrations of a database stand, from the folder of the configuration. */
export function migrationsFolder(db: string): string {
  return `svc/database/migrations/${db}`;
}

export function migrationFile(db: string, tag: string): string {
  return `${migrationsFolder(db)}/${tag}.json`;
}

const PACKAGE = 'node_modules/@svc/sdk';

/** From a migration file to the JSON Schema that the package carries: in a workspace it is installed further up. */
function schemaFrom(root: string): string {
  const up = (folder: string): string | undefined => {
    if (existsSync(join(folder, PACKAGE))) return folder;
    return dirname(folder) === folder ? undefined : up(dirname(folder));
  };
  const home = up(root) ?? root;
  const path = relative(join(root, migrationsFolder('main')), join(home, PACKAGE, 'dist/schema.json'));
  return path.replaceAll(sep, '/');
}

/** A migration as its file says it. */
export function migrationText(root: string, migration: Migration): string {
  return jsonText({ $schema: schemaFrom(root), ...migration });
}

const ENDINGS: ReadonlySet<string> = new Set(['.json', '.ts', '.js', '.mjs']);

export type MigrationFile = Required<Defined>;

/** The files of a database in tag order, unread. Throws `tag_invalid` or `tag_taken`, naming the file. */
export function migrationFiles(root: string, db: string): { readonly tag: string; readonly file: string }[] {
  const folder = migrationsFolder(db);
  const files = new Map<string, string>();
  for (const name of list(join(root, folder))) {
    const ending = extname(name);
    if (name.startsWith('.') || name.endsWith('.d.ts') || !ENDINGS.has(ending)) continue;
    const tag = name.slice(0, -ending.length);
    const file = `${folder}/${name}`;
    refuseTag(tag, file, files.get(tag));
    files.set(tag, file);
  }
  return [...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([tag, file]) => ({ tag, file }));
}

/**
 * The migrations of a database in tag order. One that was found valid before, with the same text, is parsed only when
 * it is asked for. Throws `migration_invalid`, naming the place, and what `migrationFiles` throws.
 */
export async function readMigrations(root: string, db: string): Promise<MigrationFile[]> {
  const known = new KnownTexts(root, migrationsFolder(db));
  const found: MigrationFile[] = [];
  for (const { tag, file } of migrationFiles(root, db)) {
    const path = `${root}${sep}${file}`;
    if (!file.endsWith('.json')) {
      found.push(definedBy(file, await checked(await loadMigration(path, file), file, tag)));
      continue;
    }
    const source: JsonText = { file, text: readFileSync(path, 'utf8'), code: 'migration_invalid' };
    const checksum = known.checksum(tag, source.text);
    if (checksum !== undefined) {
      found.push(new KnownMigration(tag, checksum, source));
      continue;
    }
    const one = definedBy(file, await checked(await parseJsonText(source), file, tag, source));
    known.keep(tag, source.text, one.checksum);
    found.push(one);
  }
  known.save();
  return found;
}

function definedBy(file: string, migration: Migration): MigrationFile {
  return { tag: migration.tag, file, checksum: checksum(migration), migration };
}

/** A file whose text is known to be a migration. */
class KnownMigration implements MigrationFile {
  readonly tag: string;
  readonly checksum: string;
  readonly #source: JsonText;
  #migration: Migration | undefined;

  constructor(tag: string, checksum: string, source: JsonText) {
    this.tag = tag;
    this.checksum = checksum;
    this.#source = source;
  }

  get file(): string {
    return this.#source.file;
  }

  get migration(): Migration {
    this.#migration ??= named(this.tag, plainJson(this.#source.text) as Unnamed);
    return this.#migration;
  }
}

function list(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function refuseTag(tag: string, file: string, taken: string | undefined): void {
  if (taken !== undefined) {
    throw new SvcError('tag_taken', `Two files define the migration "${tag}".`, {
      why: `${taken} and ${file} have the same name.`,
      next: ['Remove or rename one of the two.'],
      where: file,
    });
  }
  if (!isTag(tag)) {
    throw new SvcError('tag_invalid', `"${tag}" cannot be the tag of a migration.`, {
      why: 'A tag has 1 to 128 characters of A-Z a-z 0-9 _ . - and does not begin with a dot.',
      next: ['Rename the file, and the tag in it.'],
      where: file,
    });
  }
}

async function loadMigration(path: string, file: string): Promise<unknown> {
  const { loadModule } = await import('./module.ts');
  try {
    return await loadModule(path);
  } catch (error) {
    if (isSvcError(error)) throw error.where === undefined ? error.with({ where: file }) : error;
    throw new SvcError('migration_invalid', `${file} threw while it was loaded.`, {
      why: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
      next: ['Mend the file.'],
      where: file,
      cause: error,
    });
  }
}

/** In a file the name may be left to the tag. */
type Unnamed = Omit<Migration, 'name'> & { readonly name?: string };

function named(tag: string, migration: Unnamed): Migration {
  return { name: nameOfTag(tag), ...migration };
}

async function checked(value: unknown, file: string, tag: string, source?: JsonText): Promise<Migration> {
  const found = problems(value);
  const own = (value as Partial<Migration> | undefined)?.tag;
  if (found.length === 0 && own === tag) return named(tag, value as Unnamed);
  const [first] = found;
  const path: Path = first === undefined ? ['tag'] : pathIn(first);
  throw new SvcError('migration_invalid', `${file} is not a migration that can be applied.`, {
    why: found.slice(0, 3).join(' ') || `Its tag is "${own}" and its file name says "${tag}".`,
    next: [
      first === undefined
        ? 'Make the tag and the name of the file agree.'
        : source
          ? 'Mend the file.'
          : 'Export a migration object as default: migration(tag)…build().',
    ],
    where: source ? await placeOf(source, path) : file,
    ...(found.length > 0 && { details: { problems: found } }),
  });
}

/** The words and indexes a problem begins with; as many of them as lead somewhere are its place: `up[2] fields[0].type is missing.` */
function pathIn(problem: string): Path {
  const steps = [...problem.matchAll(/"([^"]+)"|([A-Za-z]\w*)|\[(\d+)\]/g)].slice(0, 12);
  return steps.map(([, quoted, word, index]) => quoted ?? word ?? Number(index));
}
