import { SvcError } from '../../../../core/errors.ts';
import type { Collection, Constraint, SchemaModel } from '../../../../core/schema/model.ts';
import type { ExecSql } from '../../sql/session.ts';
import type { Traits } from '../variant.ts';
import type { CatalogTable } from './catalog-table.ts';
import { readCatalog } from './read-catalog.ts';

const MAX_NAME = 64;

/**
 * The server's name for a constraint after its table was renamed. The server renames each constraint whose name is the
 * table's name followed by `_ibfk_` (on MySQL also `_chk_`), even one that the user named; a model keeps the old name.
 */
export function renamedName(traits: Traits, type: Constraint['type'], name: string, table: string): string | undefined {
  const suffix = traits.renamedConstraintSuffixes[type];
  const at = suffix === undefined ? -1 : name.lastIndexOf(suffix);
  return at > 0 ? table + name.slice(at) : undefined;
}

/** The name of a constraint of the model in the catalog. */
export function currentName(
  traits: Traits,
  type: Constraint['type'],
  name: string,
  { name: table, foreignKeys, checks }: Pick<CatalogTable, 'name' | 'foreignKeys' | 'checks'>,
): string {
  const existing = type === 'check' ? checks : foreignKeys;
  const afterRename = renamedName(traits, type, name, table);
  const has = (wanted: string) => existing.some((one) => one.name === wanted);
  return afterRename !== undefined && !has(name) && has(afterRename) ? afterRename : name;
}

/** A model with the names that its constraints have in the catalog. */
export async function withCurrentNames(exec: ExecSql, traits: Traits, model: SchemaModel): Promise<SchemaModel> {
  const isRenamed = ({ type, name }: Constraint, table: string) =>
    (renamedName(traits, type, name, table) ?? name) !== name;
  const affected = [...model.values()].filter(({ name, constraints }) =>
    [...constraints.values()].some((constraint) => isRenamed(constraint, name)),
  );
  const found = new Map(model);
  for (const table of await readCatalog(
    exec,
    traits,
    affected.map(({ name }) => name),
  )) {
    const collection = model.get(table.name);
    if (!collection) continue;
    const constraints = [...collection.constraints.values()].map((one): [string, Constraint] => {
      const name = currentName(traits, one.type, one.name, table);
      return [name, { ...one, name }];
    });
    found.set(table.name, { ...collection, constraints: new Map(constraints) });
  }
  return found;
}

/** Throws `name_invalid` if the server could not rename the constraints along with the table. */
export function assertRenamedNamesFit(
  traits: Traits,
  { name: table, fields, constraints }: Collection,
  to: string,
): void {
  // The server chooses the name of an array check, if it fits.
  const unnamed = !traits.hasColumnChecks && [...fields.values()].some(({ type }) => type === 'array');
  const long =
    unnamed && hasRoomForCheckNames(table) && !hasRoomForCheckNames(to)
      ? `${to}_chk_1`
      : [...constraints.values()]
          .filter(({ type, name }) => renamedName(traits, type, name, table) !== undefined)
          .map(({ type, name }) => renamedName(traits, type, name, to) ?? '')
          .find((name) => [...name].length > MAX_NAME);
  if (long === undefined) return;
  throw new SvcError('name_invalid', `"${to}" cannot be the new name of the table "${table}".`, {
    why: `The server would rename a constraint to "${long}", which is too long: the limit is ${MAX_NAME} characters.`,
    next: ['Choose a shorter name.'],
  });
}

/** Whether the server can choose names for checks of such a table. */
export const hasRoomForCheckNames = (table: string): boolean => table.length <= 56;
