import type { Dialect, Statement } from '../core/dialect.ts';
import { type ErrorCode, isSvcError, SvcError, sentences } from '../core/errors.ts';
import type { Migration } from '../core/migration/migration.ts';
import { Retelling } from '../core/migration/retelling.ts';
import { nameOfTag } from '../core/migration/tag.ts';
import { needs } from '../core/migration/touches.ts';
import { quoted } from '../core/quoted.ts';
import { change } from '../core/schema/apply.ts';
import type { Declared } from '../core/schema/declare.ts';
import { diff } from '../core/schema/diff.ts';
import { Draft } from '../core/schema/draft.ts';
import { invert } from '../core/schema/invert.ts';
import { collectionOf } from '../core/schema/lookup.ts';
import { lossy } from '../core/schema/lossy.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import { checkSharedNames } from '../core/schema/names.ts';
import type { Operation } from '../core/schema/operation.ts';
import { refusable } from '../core/schema/refusable.ts';
import { dropKey, type UndecidedRename, undecided } from '../core/schema/rename.ts';
import { generatedName } from './generated-name.ts';
import { type MigrationFile, migrationFile } from './migration-files.ts';
import { nextTag } from './next-tag.ts';
import { decisions } from './renames.ts';
import type { SchemaEntry } from './schema-entry.ts';

export interface Generation {
  readonly dialect: Dialect;
  readonly files: readonly MigrationFile[];
  readonly entry: SchemaEntry;
  readonly at: Date;
  readonly name?: string;
  readonly rename: readonly string[];
  readonly drop: readonly string[];
  /** Indexes on tables that exist already are built without locking them out of use. */
  readonly concurrently?: boolean;
  /** Asked about each name that is gone and that the flags leave open, with what it may have become; without it that is refused. */
  readonly decide?: (pairs: readonly UndecidedRename[]) => Promise<UndecidedRename | 'drop'>;
  /** Tables that the files change and never create are there, and what is generated creates them. */
  readonly adopting?: boolean;
}

export interface Generated {
  /** From the folder of the configuration. */
  readonly file: string;
  readonly migration: Migration;
  readonly statements: readonly Statement[];
  /** What rows that are there may refuse. */
  readonly refusable: readonly string[];
  /** What the way back is refused for where there are rows. */
  readonly refusableBack: readonly string[];
}

/** The migrations that lead from the files to the schema file; none where they agree. Sees no database. */
export async function generate(generation: Generation): Promise<Generated[]> {
  const { dialect, files, entry, at } = generation;
  const before = modelOfFiles(files, generation.adopting);
  const target = await decided(generation, before);
  checkSharedNames(dialect.name, dialect.capabilities.names, target.model);
  const operations = diff(before, target.model, target.renames).map((operation) =>
    generation.concurrently ? concurrent(operation, before) : operation,
  );
  let newest = files.at(-1)?.tag;
  return parts(operations, dialect, before).map((part): Generated => {
    const tag = nextTag(generation.name ?? generatedName(part.up), at, newest);
    newest = tag;
    const { statements, refusable, refusableBack, ...content } = part;
    const migration = { tag, name: nameOfTag(tag), ...content };
    return { file: migrationFile(entry.db, tag), migration, statements, refusable, refusableBack };
  });
}

/**
 * What the migration files make. What a file changes another one before it must have created, unless the table was
 * adopted afterwards: then a later file creates it as it had become.
 */
export function modelOfFiles(files: readonly MigrationFile[], adopting = false): Draft {
  const retelling = new Retelling();
  const madeLast = new Map(
    files.flatMap(({ tag, migration }) => created(migration).map((name) => [name, tag] as const)),
  );
  for (const { tag, migration, file } of files) {
    for (const [index, operation] of migration.up.entries()) {
      try {
        for (const name of needs(operation)) {
          if (!adopting && (madeLast.get(name) ?? '') <= tag) collectionOf(retelling.model, name);
        }
        retelling.tell(operation);
      } catch (error) {
        if (!isSvcError(error)) throw error;
        throw error.with({
          where: `${file} up[${index}]`,
          ...(error.code === 'collection_unknown' && {
            why: 'The migration files before it do not create the table.',
            next: [
              ...error.next,
              'A table made through the API: svc db migrate export',
              'A table that was there before: svc db schema pull',
            ],
          }),
        });
      }
    }
  }
  for (const name of retelling.foreign) retelling.model.delete(name);
  return retelling.model;
}

function created({ up }: Migration): string[] {
  return up.flatMap((operation) => (operation.type === 'createCollection' ? [operation.name] : []));
}

async function decided({ entry, rename, drop, decide }: Generation, before: SchemaModel): Promise<Declared> {
  const { renames, drops } = decisions({ rename, drop }, entry, before);
  for (;;) {
    const target = await entry.declare(before, { renames, drops });
    const open = [...target.doubtful, ...undecided(before, target.model, target.renames)].filter(
      (pair) => !drops.has(dropKey(pair)),
    );
    const [first] = open;
    if (!first) return target;
    if (!decide) throw renameUndecided(open);
    const answer = await decide(open.filter((pair) => pair.kind === first.kind && dropKey(pair) === dropKey(first)));
    if (answer === 'drop') drops.add(dropKey(first));
    else renames.push(answer);
  }
}

function renameUndecided(open: readonly UndecidedRename[]): SvcError {
  const flags = open.map((pair) => ({
    rename: renameFlag(pair),
    ...(pair.doubt !== 'stays' && { drop: `--drop ${quoted(dropKey(pair))}` }),
  }));
  return new SvcError('rename_undecided', 'Renamed, or dropped and added? That is not decided.', {
    why: open.map(openQuestion).join(' '),
    state: 'Nothing was written.',
    next: open.map((pair, index) => {
      const rename = `${renameFlag(pair)}${pair.doubt === 'replaces' ? ` (drops the ${newName(pair)} of before)` : ''}`;
      return `${rename} or ${flags[index]?.drop ?? `take "renamedFrom" out of ${newName(pair)}`}`;
    }),
    details: { undecided: open.map((pair, index) => ({ ...pair, flags: flags[index] })) },
  });
}

function openQuestion(pair: UndecidedRename): string {
  const [old, name] = [dropKey(pair), newName(pair)];
  if (pair.doubt === undefined) return `${old} is gone and ${name} is new.`;
  const says = `${name} says "renamedFrom": ${JSON.stringify(pair.from)}`;
  return pair.doubt === 'stays'
    ? `${says} and is new, and ${old} stays.`
    : `${says} and was there before; ${old} is gone.`;
}

export function newName({ kind, collection, to }: UndecidedRename): string {
  return kind === 'collection' ? to : `${collection}.${to}`;
}

function renameFlag(pair: UndecidedRename): string {
  return `--rename ${quoted(`${dropKey(pair)}:${pair.to}`)}`;
}

function concurrent(operation: Operation, before: SchemaModel): Operation {
  if (operation.type !== 'createIndex' || !before.has(operation.collection)) return operation;
  return { ...operation, sqlOptions: { concurrently: true } };
}

type Part = Pick<Migration, 'up' | 'down' | 'irreversible' | 'lossy'> &
  Pick<Generated, 'statements' | 'refusable' | 'refusableBack'>;

interface OpenPart {
  readonly up: Operation[];
  readonly down: Operation[];
  readonly lossy: string[];
  readonly refusable: string[];
  readonly refusableBack: string[];
  readonly statements: Statement[];
  readonly alone: boolean;
}

/** One migration, or several where a statement cannot be in a transaction with the others. */
function parts(operations: readonly Operation[], dialect: Dialect, before: SchemaModel): Part[] {
  const model = new Draft(before);
  const found: Part[] = [];
  const empty = new Set<string>();
  let open: OpenPart | undefined;
  const close = (): void => {
    if (open) found.push(closed(open, dialect, model));
    open = undefined;
  };
  for (const operation of operations) {
    const statements = dialect.compile(operation, model);
    const alone = dialect.capabilities.transactionalDdl && statements.some(({ transactional }) => !transactional);
    if (alone || open?.alone) close();
    open ??= { up: [], down: [], lossy: [], refusable: [], refusableBack: [], statements: [], alone };
    open.up.push(operation);
    const back = invert(operation, model);
    open.down.unshift(...back);
    open.lossy.push(...lossy(operation, model));
    open.statements.push(...statements);
    if (operation.type === 'createCollection') empty.add(operation.name);
    else if (operation.type !== 'raw' && !empty.has(operation.collection)) {
      open.refusable.push(...[refusable(operation, model)].filter((why) => why !== undefined));
      // What rows may break on the way back is theirs to say then; a value that is gone is missing in each.
      const lost = operation.type === 'dropField' ? back.filter(({ type }) => type === 'addField') : [];
      open.refusableBack.push(...lost.flatMap((one) => refusable(one, model) ?? []));
    }
    change(model, operation);
  }
  close();
  return found;
}

/** What an engine cannot do, and the drop of an adopted table that others have pointed at before it was. */
const NO_WAY_BACK: ReadonlySet<ErrorCode> = new Set(['not_supported', 'collection_referenced']);

/** The way back is compiled too: what is refused there makes the migration irreversible, and it says so. */
function closed(
  { up, down, lossy, refusable, refusableBack, statements }: OpenPart,
  dialect: Dialect,
  after: SchemaModel,
): Part {
  const content = { up, statements, refusable, refusableBack, ...(lossy.length > 0 && { lossy }) };
  const model = new Draft(after);
  try {
    for (const operation of down) {
      dialect.compile(operation, model);
      change(model, operation);
    }
  } catch (error) {
    if (!isSvcError(error) || !NO_WAY_BACK.has(error.code)) throw error;
    return { ...content, down: [], irreversible: sentences(error) };
  }
  return { ...content, down };
}
