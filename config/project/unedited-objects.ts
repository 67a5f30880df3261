import { containsWord } from '../../core/match-text.ts';
import { type DatabaseObject, nameInTable, type ObjectModel } from '../../core/schema/database-object.ts';
import type { MigrationOperation } from '../../core/schema/operation.ts';
import { PathWords, schemasIn } from '../../core/schema/path-words.ts';

/**
 * Which objects still name a table, a view or a field that the operations drop or rename. Their texts are not parsed: the name
 * may be that of something else.
 */
export function uneditedObjects(
  operations: readonly MigrationOperation[],
  objects: ObjectModel,
  fileOf: (object: DatabaseObject) => string,
): readonly string[] {
  const removals = removalsIn(operations);
  const paths = new PathWords(schemasIn([...objects.values()]));
  return [...objects.values()].flatMap((object) => {
    const text = paths.split(object.definition);
    const namesTable = (table: string): boolean => {
      const path = paths.wordOf(table);
      return path === undefined ? containsWord(text.rest, table) : text.paths.includes(path);
    };
    const found = removals.find(
      ({ table, field }) => namesTable(table) && (field === undefined || containsWord(object.definition, field)),
    );
    if (!found) return [];
    const { table, field, kind = 'table', change } = found;
    const what = field === undefined ? `the ${kind} "${table}"` : `"${table}.${field}"`;
    return [
      `${object.kind} "${nameInTable(object)}" names ${what}, which it ${change}; if it reads it: edit ${fileOf(object)}, delete this migration and generate again`,
    ];
  });
}

interface Removal {
  /** Or a view. */
  readonly table: string;
  readonly kind?: 'view';
  readonly field?: string;
  readonly change: 'drops' | 'renames';
}

/** Without names that a later operation gives to something else. */
function removalsIn(operations: readonly MigrationOperation[]): readonly Removal[] {
  const removals = new Map<string, Removal>();
  const add = (removal: Removal) => removals.set(keyOf(removal), removal);
  for (const operation of operations) {
    switch (operation.type) {
      case 'dropObject':
        if (operation.kind.endsWith('view')) add({ table: operation.name, kind: 'view', change: 'drops' });
        break;
      case 'createObject':
        removals.delete(keyOf({ table: operation.name }));
        break;
      case 'dropCollection':
        add({ table: operation.collection, change: 'drops' });
        break;
      case 'renameCollection':
        removals.delete(keyOf({ table: operation.to }));
        add({ table: operation.collection, change: 'renames' });
        break;
      case 'createCollection':
        removals.delete(keyOf({ table: operation.name }));
        break;
      case 'dropField':
        add({ table: operation.collection, field: operation.field, change: 'drops' });
        break;
      case 'renameField':
        removals.delete(keyOf({ table: operation.collection, field: operation.to }));
        add({ table: operation.collection, field: operation.from, change: 'renames' });
        break;
      case 'addField':
        removals.delete(keyOf({ table: operation.collection, field: operation.field.name }));
        break;
    }
  }
  return [...removals.values()];
}

const keyOf = ({ table, field = '' }: Pick<Removal, 'table' | 'field'>): string => JSON.stringify([table, field]);
