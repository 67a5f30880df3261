import { SvcError } from '../errors.ts';
import type { Declaration } from './declaration.ts';
import { invalid } from './declared-place.ts';
import type { SchemaModel } from './model.ts';
import { type Decisions, dropKey, type UndecidedRename } from './rename.ts';
import type { Renames } from './renames.ts';
import type { Path } from './shape.ts';

export interface DeclaredRenames {
  readonly renames: Renames;
  /** Where nobody can tell whether an earlier migration has done it. */
  readonly doubtful: readonly UndecidedRename[];
}

type Names = { has(name: string): boolean };

interface Wish {
  readonly from: string;
  readonly to: string;
  readonly path: Path;
}

/** The tables of a schema, or the fields of one table. */
interface Scope extends Pick<UndecidedRename, 'kind'> {
  /** Of the fields. */
  readonly collection?: string;
  readonly wishes: readonly Wish[];
  readonly previous: Names;
  readonly next: Names;
}

interface Settled {
  /** Old name to new. */
  readonly renames: ReadonlyMap<string, string>;
  readonly doubtful: readonly UndecidedRename[];
}

/**
 * What was decided, and what the `renamedFrom` of a declaration still ask for; those that an earlier migration did
 * are over.
 */
export function declaredRenames(
  declaration: Declaration,
  model: SchemaModel,
  previous: SchemaModel,
  decisions: Decisions,
): DeclaredRenames {
  const wishes = Object.entries(declaration.options ?? {}).flatMap(([to, { renamedFrom }]) =>
    wish(renamedFrom, to, ['options', to, 'renamedFrom']),
  );
  const tables = settled({ kind: 'collection', wishes, previous, next: model }, decisions);
  const origins = new Map([...tables.renames].map(([from, to]) => [to, from]));
  const fields = new Map<string, ReadonlyMap<string, string>>();
  const doubtful = [...tables.doubtful];
  for (const [collection, after] of model) {
    const wishes = fieldWishes(declaration, collection);
    const before = previous.get(origins.get(collection) ?? collection);
    // A table whose name went to another one is new under its old name.
    if (!before || (!origins.has(collection) && tables.renames.has(collection))) continue;
    const scope: Scope = { kind: 'field', collection, wishes, previous: before.fields, next: after.fields };
    const { renames, doubtful: more } = settled(scope, decisions);
    if (renames.size > 0) fields.set(collection, renames);
    doubtful.push(...more);
  }
  return { renames: { collections: tables.renames, fields }, doubtful };
}

function fieldWishes({ tables }: Declaration, table: string): Wish[] {
  return Object.entries(tables[table] ?? {}).flatMap(([to, definition]) =>
    typeof definition === 'string' ? [] : wish(definition.renamedFrom, to, ['tables', table, to, 'renamedFrom']),
  );
}

function wish(from: string | undefined, to: string, path: Path): Wish[] {
  if (from === undefined) return [];
  if (from === to) throw invalid(`"${to}" is said to be renamed from itself.`, 'renamedFrom is the old name.', path);
  return [{ from, to, path }];
}

/**
 * A wish is open where the old name was there and goes, and the new one is new. In a chain a name goes and comes:
 * it is given to something else and taken from another. Where only one of the two is so, it is doubtful.
 */
function settled({ kind, collection, wishes, previous, next }: Scope, { renames, drops }: Decisions): Settled {
  const pairOf = ({ from, to }: Pick<Wish, 'from' | 'to'>) => ({ kind, collection: collection ?? to, from, to });
  const decided = new Map(
    renames
      .filter((pair) => pair.kind === kind && (collection === undefined || pair.collection === collection))
      .map(({ from, to }) => [from, to] as const),
  );
  const taken = new Set(decided.values());
  const wanted = wishes.filter(
    (one) => previous.has(one.from) && !decided.has(one.from) && !taken.has(one.to) && !drops.has(dropKey(pairOf(one))),
  );
  let found = decided;
  let filled = taken;
  const goes = (name: string) => !next.has(name) || filled.has(name);
  const isNew = (name: string) => !previous.has(name) || found.has(name);
  let open = wanted;
  let count: number;
  do {
    count = open.length;
    found = reached(open, decided, previous);
    filled = new Set(found.values());
    open = open.filter(({ from, to }) => isNew(to) && goes(from));
  } while (open.length < count);
  refuseTwice(open);
  const doubtful = wanted.flatMap((one): UndecidedRename[] => {
    if (found.has(one.from) || isNew(one.to) === goes(one.from)) return [];
    return [{ ...pairOf(one), doubt: isNew(one.to) ? 'stays' : 'replaces' }];
  });
  return { renames: found, doubtful };
}

/** Those whose new name is free, at once or when another one has left it. */
function reached(wishes: readonly Wish[], decided: ReadonlyMap<string, string>, previous: Names): Map<string, string> {
  const found = new Map(decided);
  let before: number;
  do {
    before = found.size;
    for (const { from, to } of wishes) if (!previous.has(to) || found.has(to)) found.set(from, to);
  } while (found.size > before);
  return found;
}

function refuseTwice(wishes: readonly Wish[]): void {
  const claimed = new Set<string>();
  for (const { from, path } of wishes) {
    if (claimed.has(from)) {
      throw new SvcError('schema_invalid', `Two things are said to be renamed from "${from}".`, { details: { path } });
    }
    claimed.add(from);
  }
}
