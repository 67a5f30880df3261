import { SvcError } from '../errors.ts';
import type { Declaration } from './declaration.ts';
import type { SchemaModel } from './model.ts';
import type { Renames } from './renames.ts';
import type { Path } from './shape.ts';

type Names = { has(name: string): boolean };

interface Wish {
  readonly from: string;
  readonly to: string;
  readonly path: Path;
}

/** What the `renamedFrom` of a declaration still asks for; those that an earlier migration did are over. */
export function declaredRenames(declaration: Declaration, model: SchemaModel, previous: SchemaModel): Renames {
  const wishes = Object.entries(declaration.options ?? {}).flatMap(([to, { renamedFrom }]): Wish[] =>
    renamedFrom === undefined ? [] : [{ from: renamedFrom, to, path: ['options', to, 'renamedFrom'] }],
  );
  const collections = open(wishes, previous, model);
  const origins = new Map([...collections].map(([from, to]) => [to, from]));
  const fields = new Map<string, ReadonlyMap<string, string>>();
  for (const [table, after] of model) {
    const before = previous.get(origins.get(table) ?? table);
    // A table whose name went to another one is new under its old name.
    if (!before || (!origins.has(table) && collections.has(table))) continue;
    const renamed = open(fieldWishes(declaration, table), before.fields, after.fields);
    if (renamed.size > 0) fields.set(table, renamed);
  }
  return { collections, fields };
}

function fieldWishes({ tables }: Declaration, table: string): Wish[] {
  return Object.entries(tables[table] ?? {}).flatMap(([to, definition]): Wish[] => {
    if (typeof definition === 'string' || definition.renamedFrom === undefined) return [];
    return [{ from: definition.renamedFrom, to, path: ['tables', table, to, 'renamedFrom'] }];
  });
}

/**
 * A wish is open while the old name is there and the new one is not. In a chain the new one is given away itself;
 * then the old one must not be wanted any more, or a wish of long ago would come back.
 */
function open(wishes: readonly Wish[], previous: Names, next: Names): ReadonlyMap<string, string> {
  const filled = new Set(wishes.map(({ to }) => to));
  const claimed = new Set<string>();
  for (const { from, path } of wishes) {
    if (claimed.has(from)) {
      throw new SvcError('schema_invalid', `Two things are said to be renamed from "${from}".`, { details: { path } });
    }
    claimed.add(from);
  }
  const found = new Map<string, string>();
  let before: number;
  do {
    before = found.size;
    for (const { from, to } of wishes) {
      if (from === to || !previous.has(from)) continue;
      if (!previous.has(to) || (found.has(to) && (!next.has(from) || filled.has(from)))) found.set(from, to);
    }
  } while (found.size > before);
  return found;
}
