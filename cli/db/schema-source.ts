import { builtins } from '../../config/load/builtin.ts';
import { identifyDatabase } from '../../config/load/identify.ts';
import { loadRuntime, type Runtime } from '../../config/load/runtime.ts';
import { objectsFromFiles, replayFiles } from '../../config/project/generate.ts';
import type { MigrationFile } from '../../config/project/migration-files.ts';
import { readObjectFiles } from '../../config/project/object-files.ts';
import type { Schema } from '../../config/project/schema-difference.ts';
import { readSchemaFile, SCHEMA_FILE, type SchemaEntry } from '../../config/project/schema-file.ts';
import type { Connection, Dialect } from '../../core/dialect.ts';
import { isSvcError, SvcError } from '../../core/errors.ts';
import type { Kernel } from '../../core/kernel.ts';
import { introspectWhole } from '../../core/migration/drift.ts';
import { readObjects } from '../../core/migration/objects.ts';
import { nearest } from '../../core/nearest.ts';
import { withMirrors } from '../../core/schema/mirror.ts';
import { withoutPassword } from '../../core/url.ts';
import { loadSdk } from '../base.ts';

/** A schema that `svc db schema diff` compares. */
export type SchemaSource =
  | { readonly kind: 'files' | 'empty' }
  /** The history as of a migration; without one, with all of them. */
  | { readonly kind: 'migrations'; readonly tag?: string }
  | { readonly kind: 'database'; readonly database: string; readonly env?: string }
  | { readonly kind: 'url'; readonly url: string };

/** For the help of options. */
export const SOURCES =
  'files, migrations, empty, the tag of a migration, a database (main, or main@staging for an environment), or a URL';

/** Any word that is nothing else is the tag of a migration. */
export function parseSchemaSource(text: string, databases: readonly string[]): SchemaSource {
  if (text.includes('://')) return { kind: 'url', url: text };
  if (text === 'files' || text === 'empty' || text === 'migrations') return { kind: text };
  if (databases.includes(text)) return { kind: 'database', database: text };
  const at = text.indexOf('@');
  const database = text.slice(0, Math.max(at, 0));
  if (databases.includes(database)) return { kind: 'database', database, env: text.slice(at + 1) };
  return { kind: 'migrations', tag: text };
}

/** Whether the source is in the project. */
export const isOfProject = ({ kind }: SchemaSource): boolean => kind !== 'url' && kind !== 'empty';

/** For people, without a password. */
export function describeSource(source: SchemaSource): string {
  switch (source.kind) {
    case 'files':
      return SCHEMA_FILE;
    case 'empty':
      return 'an empty database';
    case 'migrations':
      return source.tag ?? 'the migrations';
    case 'database':
      return source.env === undefined ? source.database : `${source.database}@${source.env}`;
    case 'url':
      return withoutPassword(source.url);
  }
}

/** The files of a database of the project. */
export interface ProjectFiles {
  readonly database: string;
  readonly dialect: Dialect;
  readonly migrations: readonly MigrationFile[];
}

export interface ReadOptions {
  readonly signal: AbortSignal;
  /** Of URLs, in place of those in the configuration. */
  readonly schemas: readonly string[] | undefined;
}

const EMPTY: Schema = { model: new Map(), objects: new Map() };

/** Reads schemas of one dialect. Keeps its connections open until it is closed. */
export class SchemaReader {
  readonly #runtime: Runtime;
  readonly #dialect: Dialect;
  readonly #project: ProjectFiles | undefined;
  readonly #options: ReadOptions;
  readonly #open: { close(): Promise<void> }[] = [];

  constructor(runtime: Runtime, dialect: Dialect, project: ProjectFiles | undefined, options: ReadOptions) {
    this.#runtime = runtime;
    this.#dialect = dialect;
    this.#project = project;
    this.#options = options;
  }

  /** What the schema file leaves open, such as the names of indexes, is as in `other`. */
  async read(source: SchemaSource, other: Schema = EMPTY): Promise<Schema> {
    switch (source.kind) {
      case 'empty':
        return EMPTY;
      case 'files': {
        const { model } = await (await this.entry()).declare(other.model, undefined, this.#dialect.capabilities.names);
        return { model, objects: this.objectFiles() };
      }
      case 'migrations':
        return this.#asOf(source.tag);
      case 'database':
        return this.#readDatabase(source.database, source.env);
      case 'url':
        return this.#readUrl(source.url);
    }
  }

  /** The entry of the schema file. Throws `schema_missing` and `schema_invalid`. */
  async entry(): Promise<SchemaEntry> {
    const { database } = this.#files;
    const entry = (await readSchemaFile(this.#runtime.root, this.#runtime.databases)).get(database);
    if (entry) return entry;
    throw new SvcError('schema_invalid', `${SCHEMA_FILE} has no entry for "${database}".`, {
      next: [`Add { "db": "${database}", "tables": { … } } to it.`],
      where: SCHEMA_FILE,
    });
  }

  objectFiles(): Schema['objects'] {
    return readObjectFiles(this.#runtime.root, this.#files.database, this.#dialect);
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#open.map((one) => one.close()));
  }

  get #files(): ProjectFiles {
    if (this.#project) return this.#project;
    throw new Error('The schema file and migrations need a project.');
  }

  #asOf(tag: string | undefined): Schema {
    const { migrations } = this.#files;
    const included = tag === undefined ? migrations : migrations.slice(0, this.#indexOf(tag) + 1);
    return { model: replayFiles(included, this.#dialect.name).model, objects: objectsFromFiles(included) };
  }

  #indexOf(tag: string): number {
    const { database, migrations } = this.#files;
    const tags = migrations.map((one) => one.tag);
    const index = tags.indexOf(tag);
    if (index >= 0) return index;
    const near = nearest(tag, [...tags, ...this.#runtime.databases, 'files', 'migrations', 'empty']);
    throw new SvcError('migration_unknown', `"${tag}" is neither a migration file of "${database}" nor a database.`, {
      next: [
        ...(near === undefined ? [] : [`Did you mean "${near}"?`]),
        `Write one of: ${SOURCES}.`,
        'For a migration made through the API: svc db migrate export',
      ],
    });
  }

  async #readDatabase(database: string, env = this.#runtime.env): Promise<Schema> {
    const { file } = this.#runtime;
    const runtime = await loadRuntime({ configFile: file, env }, loadSdk);
    this.#open.push(runtime);
    const options = { readOnly: true, signal: this.#options.signal };
    const { connection, dialect } = await runtime.connect(database, options).catch((error) => {
      throw env === this.#runtime.env ? error : inOtherEnv(error, runtime, database);
    });
    if (dialect.name !== this.#dialect.name) throw differentDialects(this.#dialect.name, dialect.name);
    const schema = await schemaOf(connection);
    const operations = (this.#project?.migrations ?? []).flatMap(({ migration }) => migration.up);
    return { ...schema, model: withMirrors(schema.model, operations) };
  }

  /** With the options of the database that it is compared with, or that `--db` names. */
  async #readUrl(url: string): Promise<Schema> {
    if (!isUrlOf(await this.#runtime.kernel(), this.#dialect, url))
      throw differentDialects(this.#dialect.name, withoutPassword(url));
    const { signal, schemas } = this.#options;
    const connection = await this.#dialect.connect(url, {
      root: this.#runtime.root,
      ...this.#databaseOptions(),
      ...(schemas !== undefined && { schemas }),
      readOnly: true,
      signal,
    });
    this.#open.push(connection);
    return schemaOf(connection);
  }

  /** Without its schemas, if others are asked for. */
  #databaseOptions(): Readonly<Record<string, unknown>> {
    if (!this.#project) return {};
    const { schema, schemas, options = {} } = this.#runtime.database(this.#project.database);
    const all = { ...options, ...(schema !== undefined && { schema }), ...(schemas !== undefined && { schemas }) };
    if (this.#options.schemas === undefined) return all;
    return Object.fromEntries(Object.entries(all).filter(([name]) => name !== 'schema' && name !== 'schemas'));
  }
}

/** The environment is part of the source: `--env` does not change it. */
function inOtherEnv(error: unknown, runtime: Runtime, database: string): unknown {
  const { url } = runtime.database(database);
  if (!isSvcError(error) || error.code !== 'env_unknown' || typeof url !== 'object') return error;
  return error.with({ next: Object.keys(url).map((env) => `Write ${database}@${env}.`) });
}

async function schemaOf(connection: Connection): Promise<Schema> {
  return { ...(await introspectWhole(connection)), objects: await readObjects(connection), connection };
}

/** The dialect that has URLs of this form: one that the project uses, or a built-in one. Throws `usage`. */
export async function dialectOfUrl(url: string, runtime: Runtime): Promise<Dialect> {
  const used = runtime.databases.map((tag): string => runtime.database(tag).dialect);
  const names = [...new Set([...used, ...Object.keys(builtins.dialects)])];
  for (const name of names) {
    const dialect = await runtime.find('dialects', name);
    if (isUrlOf(await runtime.kernel(), dialect, url)) return dialect;
  }
  throw new SvcError('usage', `No dialect has URLs such as ${withoutPassword(url)}.`, {
    why: `The dialects are ${names.join(', ')}.`,
    next: ['--dialect <name>'],
  });
}

function isUrlOf(kernel: Kernel, dialect: Dialect, url: string): boolean {
  try {
    identifyDatabase(kernel, dialect, url);
    return true;
  } catch (error) {
    if (isSvcError(error) && error.code !== 'plugin_invalid') return false;
    throw error;
  }
}

const differentDialects = (dialect: string, other: string): SvcError =>
  new SvcError('usage', `A schema of ${dialect} cannot be compared with ${other}.`, {
    why: 'Both sides must be of one dialect, because the difference is in its language.',
  });
