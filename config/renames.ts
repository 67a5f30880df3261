import { SvcError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import type { UndecidedRename } from '../core/schema/rename.ts';
import type { SchemaEntry } from './schema-entry.ts';

/** What a person said about names that are gone: renamed, or dropped. */
export interface Decisions {
  readonly renames: UndecidedRename[];
  /** As `dropKey` spells them. */
  readonly drops: Set<string>;
}

export function dropKey({ kind, collection, from }: UndecidedRename): string {
  return kind === 'collection' ? from : `${collection}.${from}`;
}

/** The flags that decide: `--rename users.name:full_name`, `--rename users:people`, `--drop users.name`. */
export function decisions(
  flags: { readonly rename: readonly string[]; readonly drop: readonly string[] },
  entry: SchemaEntry,
  before: SchemaModel,
): Decisions {
  const renames: UndecidedRename[] = [];
  // Tables first: a field is looked for in the table under its old name.
  const parsed = flags.rename.map((flag) => ({ flag, table: tableRename(flag, entry, before) }));
  for (const { table } of parsed) if (table) renames.push(table);
  for (const { flag, table } of parsed) if (!table) renames.push(fieldRename(flag, entry, before, renames));
  for (const flag of flags.drop) refuseUnknownDrop(flag, before, renames);
  return { renames, drops: new Set(flags.drop) };
}

/** Every way to cut a text at a separator: names may contain it. */
function cuts(text: string, separator: string): [string, string][] {
  const found: [string, string][] = [];
  for (let at = text.indexOf(separator); at >= 0; at = text.indexOf(separator, at + 1)) {
    found.push([text.slice(0, at), text.slice(at + 1)]);
  }
  return found;
}

function tableRename(flag: string, entry: SchemaEntry, before: SchemaModel): UndecidedRename | undefined {
  for (const [from, to] of cuts(flag, ':')) {
    if (before.has(from) && entry.fieldsOf(to)) return { kind: 'collection', collection: to, from, to };
  }
  return undefined;
}

function fieldRename(
  flag: string,
  entry: SchemaEntry,
  before: SchemaModel,
  tables: readonly UndecidedRename[],
): UndecidedRename {
  for (const [left, to] of cuts(flag, ':')) {
    for (const [collection, from] of cuts(left, '.')) {
      const known = before.get(oldName(collection, tables));
      if (known?.fields.has(from) && entry.fieldsOf(collection)?.includes(to)) {
        return { kind: 'field', collection, from, to };
      }
    }
  }
  throw new SvcError('usage', `--rename ${flag} does not fit the schema file and the migrations.`, {
    why: 'The old name must be in the migration files and the new one in the schema file.',
    state: 'Nothing was written.',
    next: ['--rename <table>.<old field>:<new field>', '--rename <old table>:<new table>'],
  });
}

function oldName(collection: string, tables: readonly UndecidedRename[]): string {
  return tables.find(({ kind, to }) => kind === 'collection' && to === collection)?.from ?? collection;
}

function refuseUnknownDrop(flag: string, before: SchemaModel, tables: readonly UndecidedRename[]): void {
  if (before.has(flag)) return;
  const fields = cuts(flag, '.').flatMap(([table, field]) => {
    const known = before.get(oldName(table, tables));
    return known ? [{ field, known }] : [];
  });
  if (fields.some(({ field, known }) => known.fields.has(field))) return;
  const near = nearest(
    flag,
    [...before].flatMap(([name, { fields }]) => [name, ...[...fields.keys()].map((field) => `${name}.${field}`)]),
  );
  throw new SvcError(
    fields.length > 0 ? 'field_unknown' : 'collection_unknown',
    `--drop ${flag}: no migration file created it.`,
    {
      why: 'generate sees the migration files and no database: it drops what they made and nothing else.',
      state: 'Nothing was written.',
      next: [...(near === undefined ? [] : [`Did you mean --drop ${near}?`]), 'svc db schema pull'],
    },
  );
}
