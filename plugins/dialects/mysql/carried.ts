import { SvcError } from '../../../core/errors.ts';
import type { Collection, Constraint, SchemaModel } from '../../../core/schema/model.ts';
import type { Exec } from '../../sql/session.ts';
import { type CatalogTable, readCatalog } from './catalog.ts';
import type { Traits } from './traits.ts';

const MOST = 64;

/**
 * What the server calls a constraint of a table that had another name when it was made. One whose name is that of its
 * table with `_ibfk_` behind it, on MySQL also `_chk_`, is renamed with the table, whoever gave it that name; a model
 * keeps the one it was told.
 */
export function carriedName(traits: Traits, type: Constraint['type'], name: string, table: string): string | undefined {
  const word = traits.carries[type];
  const at = word === undefined ? -1 : name.lastIndexOf(word);
  return at > 0 ? table + name.slice(at) : undefined;
}

/** The name under which a catalog has it now. */
export function nameNow(
  traits: Traits,
  type: Constraint['type'],
  name: string,
  { name: table, foreignKeys, checks }: Pick<CatalogTable, 'name' | 'foreignKeys' | 'checks'>,
): string {
  const there = type === 'check' ? checks : foreignKeys;
  const carried = carriedName(traits, type, name, table);
  const has = (wanted: string) => there.some((one) => one.name === wanted);
  return carried !== undefined && !has(name) && has(carried) ? carried : name;
}

/** A model with the names that its constraints have by now. */
export async function withNamesNow(exec: Exec, traits: Traits, model: SchemaModel): Promise<SchemaModel> {
  const isOther = ({ type, name }: Constraint, table: string) =>
    (carriedName(traits, type, name, table) ?? name) !== name;
  const doubtful = [...model.values()].filter(({ name, constraints }) =>
    [...constraints.values()].some((constraint) => isOther(constraint, name)),
  );
  const found = new Map(model);
  for (const table of await readCatalog(
    exec,
    traits,
    doubtful.map(({ name }) => name),
  )) {
    const collection = model.get(table.name);
    if (!collection) continue;
    const constraints = [...collection.constraints.values()].map((one): [string, Constraint] => {
      const name = nameNow(traits, one.type, one.name, table);
      return [name, { ...one, name }];
    });
    found.set(table.name, { ...collection, constraints: new Map(constraints) });
  }
  return found;
}

/** Refuses a name of a table with which the server could not rename its constraints. */
export function refuseLongCarried(traits: Traits, { name: table, fields, constraints }: Collection, to: string): void {
  // Checks of arrays have a name that the server made up, as long as there was room for it.
  const unnamed = !traits.ownsColumnChecks && [...fields.values()].some(({ type }) => type === 'array');
  const long =
    unnamed && hasRoom(table) && !hasRoom(to)
      ? `${to}_chk_1`
      : [...constraints.values()]
          .filter(({ type, name }) => carriedName(traits, type, name, table) !== undefined)
          .map(({ type, name }) => carriedName(traits, type, name, to) ?? '')
          .find((name) => [...name].length > MOST);
  if (long === undefined) return;
  throw new SvcError('name_invalid', `"${to}" cannot be the new name of the table "${table}".`, {
    why: `The server would rename a constraint with it, and "${long}" leaves no room: the limit is ${MOST} characters.`,
    next: ['Choose a shorter name.'],
  });
}

/** Whether the server finds names for checks of such a table. */
export const hasRoom = (table: string): boolean => table.length <= 56;
