import type { Dialect } from '../../core/dialect.ts';
import { isSvcError, SvcError, shellQuote } from '../../core/errors.ts';
import { requiredCollections } from '../../core/migration/affected-collections.ts';
import { arrangeObjects } from '../../core/migration/arrange-objects.ts';
import { assertMirrors } from '../../core/migration/compile-operation.ts';
import type { Migration } from '../../core/migration/migration.ts';
import { type FindRawMention, rawMentions } from '../../core/migration/raw-mentions.ts';
import { MigrationReplay } from '../../core/migration/replay.ts';
import { nameOfTag } from '../../core/migration/tag.ts';
import { type DatabaseObject, type ObjectModel, objectKey, objectsAfter } from '../../core/schema/database-object.ts';
import type { ResolvedDeclaration } from '../../core/schema/declaration/resolve-declaration.ts';
import { diff } from '../../core/schema/diff.ts';
import { collectionOf } from '../../core/schema/find-or-throw.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import { modelOperations } from '../../core/schema/model-operations.ts';
import { assertDistinctNames } from '../../core/schema/names.ts';
import type { MigrationOperation, Operation } from '../../core/schema/operation.ts';
import { dropKey, type UndecidedRename, undecidedRenames } from '../../core/schema/rename/undecided.ts';
import type { DatabaseConfig } from '../define.ts';
import { contractedBy, expandRenames } from './expand.ts';
import { assertListedSchemas } from './listed-schemas.ts';
import { type MigrationFile, migrationPath } from './migration-files.ts';
import { generatedName, nextTag } from './migration-name.ts';
import { type MigrationPart, splitIntoMigrations } from './migration-parts.ts';
import { objectFile } from './object-files.ts';
import { parseRenameFlags } from './rename-flags.ts';
import { renamesByCopy } from './renames-by-copy.ts';
import type { SchemaEntry } from './schema-file.ts';
import { uneditedObjects } from './unedited-objects.ts';
import type { NewFile } from './write-files.ts';

export interface GenerateOptions {
  readonly dialect: Dialect;
  readonly files: readonly MigrationFile[];
  readonly entry: SchemaEntry;
  readonly now: Date;
  readonly name?: string;
  readonly rename: readonly string[];
  readonly drop: readonly string[];
  /** Builds new indexes of existing tables without blocking writes. */
  readonly concurrently?: boolean;
  /** Renames fields in two halves, between which they have both names. */
  readonly expand?: boolean;
  /** Prompts for a removed name without a flag; receives its possible new names. Default: throws `rename_undecided`. */
  readonly promptRename?: (pairs: readonly UndecidedRename[]) => Promise<UndecidedRename | 'drop'>;
  /** What the object files define; by default, what the migration files do. */
  readonly objects?: ObjectModel;
  /** Its schemas are those that tables may have; by default any. */
  readonly database?: Pick<DatabaseConfig, 'schema' | 'schemas'>;
  /** Generates migrations that create the tables which the files change but never create. */
  readonly adopting?: boolean;
  /** What `replayFiles` returned for the files, if it was called before. */
  readonly replayed?: MigrationReplay;
}

export interface GeneratedMigration extends Pick<MigrationPart, 'statements' | 'risks' | 'rollbackRisks'> {
  /** Relative to the folder of the configuration. */
  readonly file: string;
  readonly migration: Migration;
  /** Which objects still name what the migration drops or renames. */
  readonly unedited: readonly string[];
}

/** Generates the migrations from the migration files to the schema file; empty if they match. Uses no database. */
export async function generate(options: GenerateOptions): Promise<GeneratedMigration[]> {
  const { dialect, files, entry, now } = options;
  const before = (options.replayed ?? replayFiles(files, dialect.name, options.adopting)).model;
  const target = await resolveRenames(options, before);
  assertDistinctNames(dialect.name, dialect.capabilities.names, target.model);
  let newest = files.at(-1)?.tag;
  const written = (parts: readonly MigrationPart[], half?: 'expand' | 'contract', contracts?: string) =>
    parts.map((part): GeneratedMigration => {
      const name = options.name ?? generatedName(part.up);
      const tag = nextTag(half === undefined ? name : `${half}_${name}`, now, newest);
      newest = tag;
      const { statements, risks, rollbackRisks, ...content } = part;
      const migration = { tag, name: nameOfTag(tag), ...content, ...(contracts !== undefined && { contracts }) };
      const fileOf = (object: DatabaseObject) => objectFile(entry.db, dialect, object).file;
      const unedited = uneditedObjects(part.up, options.objects ?? objectsFromFiles(files), fileOf);
      return { file: migrationPath(entry.db, tag), migration, statements, risks, rollbackRisks, unedited };
    });
  const parts = (operations: readonly Operation[], model: SchemaModel, objects: ObjectModel) =>
    splitIntoMigrations(
      withObjects(
        options,
        operations.map((operation) => (options.concurrently ? asConcurrent(operation, before) : operation)),
        { before: objects, tables: model },
      ),
      dialect,
      model,
      objects,
    );
  const present = objectsFromFiles(files);
  if (!options.expand) {
    const operations = renamesByCopy(diff(before, target.model, target.renames), dialect, before);
    const contracts = contractedBy(operations, files);
    return written(parts(operations, before, present), contracts === undefined ? undefined : 'contract', contracts);
  }
  const { expand, between, contract } = expandRenames(before, target.model, target.renames);
  for (const operation of expand) assertMirrors(dialect, operation);
  const first = written(parts(expand, before, present), 'expand');
  const second = parts(contract, between, options.objects ?? present);
  return [...first, ...written(second, 'contract', first.at(-1)?.migration.tag)];
}

/** The objects that the migration files produce. */
export const objectsFromFiles = (files: readonly MigrationFile[]): ObjectModel =>
  objectsAfter(files.flatMap(({ migration }) => migration.up));

function withObjects(
  options: GenerateOptions,
  operations: readonly Operation[],
  { before, tables }: { readonly before: ObjectModel; readonly tables: SchemaModel },
): readonly MigrationOperation[] {
  const { dialect, entry, objects } = options;
  if (!dialect.objects) return operations;
  if (!objects) return arrangeObjects(dialect.objects, operations, { before, after: before, tables });
  if (options.database) assertListedSchemas(dialect, options.database, operations);
  for (const operation of operations) {
    const needed = dialect.objects.needs?.(operation);
    if (needed && !before.has(objectKey(needed)) && !objects.has(objectKey(needed)))
      throw missingObject(objectFile(entry.db, dialect, needed), needed);
  }
  const arranged = arrangeObjects(dialect.objects, operations, { before, after: objects, tables });
  if (options.database) dialect.objects.assertAccepted?.(arranged, { objects, tables });
  return arranged;
}

const missingObject = ({ file, text }: NewFile, { kind, name }: DatabaseObject): SvcError =>
  new SvcError('schema_invalid', `The ${kind} "${name}" is used, and has no file.`, {
    why: 'On an empty database, no migration would create it.',
    state: 'Nothing was written.',
    next: [`Write ${file}: ${text.trimEnd()}`],
  });

/**
 * Replays the migration files; the schema that they produce is its `model`. A file may change only tables that an earlier file
 * creates, unless the table was adopted: then a later file creates it in its changed form.
 */
export function replayFiles(files: readonly MigrationFile[], dialect: string, adopting = false): MigrationReplay {
  const replay = new MigrationReplay(dialect);
  const lastCreatedBy = new Map(
    files.flatMap(({ tag, migration }) =>
      createdCollections(modelOperations(migration.up, dialect)).map((name) => [name, tag] as const),
    ),
  );
  for (const { tag, migration, file } of files) {
    for (const [index, operation] of migration.up.entries()) {
      try {
        for (const one of modelOperations([operation], dialect)) {
          for (const name of requiredCollections(one)) {
            if (!adopting && (lastCreatedBy.get(name) ?? '') <= tag) collectionOf(replay.model, name);
          }
          replay.apply(one);
        }
      } catch (error) {
        if (!isSvcError(error)) throw error;
        throw error.with({
          where: `${file} up[${index}]`,
          ...(error.code === 'collection_unknown' && {
            why: 'No earlier migration file creates the table.',
            next: nextForUnknownTable(
              error,
              operation,
              rawMentions(
                files.map((one) => one.migration),
                dialect,
              ),
            ),
          }),
        });
      }
    }
  }
  for (const name of replay.unmanaged) replay.model.delete(name);
  return replay;
}

/** Describes which tables the files change before one of them creates it. */
export const changedBeforeCreated = (
  { everUnmanaged }: MigrationReplay,
  includes: (table: string) => boolean,
): readonly string[] =>
  [...everUnmanaged]
    .filter(includes)
    .map((name) => `Migrations change the table "${name}" before one creates it, and would fail on an empty database.`);

function nextForUnknownTable(
  { next }: SvcError,
  operation: MigrationOperation,
  findRaw: FindRawMention,
): readonly string[] {
  const rawTag = requiredCollections(operation)
    .map((name) => findRaw(name))
    .find((tag) => tag !== undefined);
  if (rawTag !== undefined)
    return [
      `For a table that a raw statement of "${rawTag}" makes: say so with "makes", there or in a new migration before this one.`,
    ];
  return [
    ...next,
    'For a table created through the API: svc db migrate export',
    'For a table that svc did not create: svc db schema pull',
  ];
}

const createdCollections = (operations: readonly Operation[]): string[] =>
  operations.flatMap((operation) => (operation.type === 'createCollection' ? [operation.name] : []));

async function resolveRenames(
  { dialect, entry, rename, drop, expand = false, promptRename }: GenerateOptions,
  before: SchemaModel,
): Promise<ResolvedDeclaration> {
  const { renames, drops } = parseRenameFlags({ rename, drop }, entry, before);
  for (;;) {
    const target = await entry.declare(before, { renames, drops, expand }, dialect.capabilities.names);
    const undecided = [...target.ambiguous, ...undecidedRenames(before, target.model, target.renames)].filter(
      (pair) => !drops.has(dropKey(pair)),
    );
    const [first] = undecided;
    if (!first) return target;
    if (!promptRename) throw undecidedError(undecided);
    const answer = await promptRename(
      undecided.filter((pair) => pair.kind === first.kind && dropKey(pair) === dropKey(first)),
    );
    if (answer === 'drop') drops.add(dropKey(first));
    else renames.push(answer);
  }
}

function undecidedError(pairs: readonly UndecidedRename[]): SvcError {
  const flags = pairs.map((pair) => ({
    rename: renameFlag(pair),
    ...(pair.ambiguity !== 'oldNameDeclared' && { drop: `--drop ${shellQuote(dropKey(pair))}` }),
  }));
  return new SvcError('rename_undecided', 'Some names may have been renamed, or dropped and added.', {
    why: pairs.map(describeUndecided).join(' '),
    state: 'Nothing was written.',
    next: pairs.map((pair, index) => {
      const rename = `${renameFlag(pair)}${pair.ambiguity === 'newNameExists' ? ` (drops the previous ${newName(pair)})` : ''}`;
      return `${rename} or ${flags[index]?.drop ?? `remove "renamedFrom" from ${newName(pair)}`}`;
    }),
    details: { undecided: pairs.map((pair, index) => ({ ...pair, flags: flags[index] })) },
  });
}

function describeUndecided(pair: UndecidedRename): string {
  const [old, name] = [dropKey(pair), newName(pair)];
  if (pair.ambiguity === undefined) return `${old} was removed and ${name} was added.`;
  const declared = `${name} has "renamedFrom": ${JSON.stringify(pair.from)}`;
  return pair.ambiguity === 'oldNameDeclared'
    ? `${declared} and was added, but ${old} still exists.`
    : `${declared} and existed before; ${old} was removed.`;
}

function newName({ kind, collection, to }: UndecidedRename): string {
  return kind === 'collection' ? to : `${collection}.${to}`;
}

/** The flag that decides for a rename. */
export function renameFlag(pair: UndecidedRename): string {
  return `--rename ${shellQuote(`${dropKey(pair)}:${pair.to}`)}`;
}

function asConcurrent(operation: Operation, before: SchemaModel): Operation {
  if (operation.type !== 'createIndex' || !before.has(operation.collection)) return operation;
  return { ...operation, sqlOptions: { concurrently: true } };
}
