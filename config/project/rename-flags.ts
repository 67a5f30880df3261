import { SvcError, shellQuote } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import type { Collection, SchemaModel } from '../../core/schema/model.ts';
import { dropKey, type RenameDecisions, type UndecidedRename } from '../../core/schema/rename/undecided.ts';
import type { SchemaEntry } from './schema-file.ts';

/** Parses `--rename users.name:full_name`, `--rename users:people` and `--drop users.name`. Throws `usage`. */
export function parseRenameFlags(
  flags: { readonly rename: readonly string[]; readonly drop: readonly string[] },
  entry: Pick<SchemaEntry, 'fieldsOf'>,
  before: SchemaModel,
): RenameDecisions & { readonly renames: UndecidedRename[]; readonly drops: Set<string> } {
  const renames: UndecidedRename[] = [];
  // Tables first: fields are looked up in the table's old name.
  const parsed = [...new Set(flags.rename)].map((flag) => ({ flag, table: tableRename(flag, entry, before) }));
  for (const { table } of parsed) if (table) renames.push(table);
  for (const { flag, table } of parsed) if (!table) renames.push(fieldRename(flag, entry, before, renames));
  const drops = new Set(flags.drop);
  assertConsistent(renames, drops);
  for (const flag of drops) assertDrop(flag, entry, before, renames);
  return { renames, drops };
}

function assertConsistent(renames: readonly UndecidedRename[], drops: ReadonlySet<string>): void {
  const taken = new Set<string>();
  const removed = new Set(drops);
  for (const rename of renames) {
    const { kind, collection, from, to } = rename;
    const name = JSON.stringify([kind, collection, to]);
    const old = dropKey(rename);
    if (from === to || removed.has(old) || taken.has(name)) {
      throw new SvcError('usage', `--rename ${old}:${to} contradicts ${from === to ? 'itself' : 'another flag'}.`, {
        why: 'An old name is renamed once or dropped, and each new name has one old name.',
        state: 'Nothing was written.',
        next: [`--rename ${dropKey({ ...rename, from: '<old name>' })}:<new name>`],
      });
    }
    removed.add(old);
    taken.add(name);
  }
}

/** Every way to split a text at a separator, because names may contain it. */
function splits(text: string, separator: string): [string, string][] {
  const parts: [string, string][] = [];
  for (let at = text.indexOf(separator); at >= 0; at = text.indexOf(separator, at + 1)) {
    parts.push([text.slice(0, at), text.slice(at + 1)]);
  }
  return parts;
}

function tableRename(
  flag: string,
  entry: Pick<SchemaEntry, 'fieldsOf'>,
  before: SchemaModel,
): UndecidedRename | undefined {
  for (const [from, to] of splits(flag, ':')) {
    if (before.has(from) && entry.fieldsOf(to)) return { kind: 'collection', collection: to, from, to };
  }
  return undefined;
}

function fieldRename(
  flag: string,
  entry: Pick<SchemaEntry, 'fieldsOf'>,
  before: SchemaModel,
  tables: readonly UndecidedRename[],
): UndecidedRename {
  for (const [left, to] of splits(flag, ':')) {
    for (const [collection, from] of splits(left, '.')) {
      const known = tableBefore(collection, before, tables);
      if (known?.fields.has(from) && entry.fieldsOf(collection)?.includes(to)) {
        return { kind: 'field', collection, from, to };
      }
    }
  }
  throw new SvcError('usage', `--rename ${flag} does not match the schema file and the migrations.`, {
    why: 'The old name must be in the migration files and the new one in the schema file.',
    state: 'Nothing was written.',
    next: ['--rename <table>.<old field>:<new field>', '--rename <old table>:<new table>'],
  });
}

/** The previous state of a table in the schema file; undefined if a rename assigns its old name to another table. */
function tableBefore(name: string, before: SchemaModel, renames: readonly UndecidedRename[]): Collection | undefined {
  const tables = renames.filter(({ kind }) => kind === 'collection');
  const origin = tables.find(({ to }) => to === name)?.from;
  if (origin === undefined && tables.some(({ from }) => from === name)) return undefined;
  return before.get(origin ?? name);
}

function assertDrop(
  flag: string,
  entry: Pick<SchemaEntry, 'fieldsOf'>,
  before: SchemaModel,
  renames: readonly UndecidedRename[],
): void {
  const fields = splits(flag, '.').flatMap(([table, field]) => {
    const known = tableBefore(table, before, renames);
    return known ? [{ table, field, known }] : [];
  });
  const known = fields.filter(({ field, known }) => known.fields.has(field));
  // A name that another table or field now has can be dropped.
  const isReused = (kind: UndecidedRename['kind'], collection: string, name: string) =>
    renames.some((one) => one.kind === kind && one.collection === collection && one.to === name);
  const isDeclared = [
    ...(before.has(flag) ? [entry.fieldsOf(flag) !== undefined && !isReused('collection', flag, flag)] : []),
    ...known.map(
      ({ table, field }) => entry.fieldsOf(table)?.includes(field) === true && !isReused('field', table, field),
    ),
  ];
  if (isDeclared.includes(false)) return;
  if (isDeclared.length > 0) {
    throw new SvcError('usage', `--drop ${flag} does not match the schema file, which still declares it.`, {
      why: 'Only a table or field that the schema file no longer declares can be dropped.',
      state: 'Nothing was written.',
      next: ['Remove it from the schema file, or remove the flag.'],
    });
  }
  const near = nearest(
    flag,
    [...before].flatMap(([old, { fields }]) => {
      const name = renames.find(({ kind, from }) => kind === 'collection' && from === old)?.to ?? old;
      return [old, ...[...fields.keys()].map((field) => `${name}.${field}`)];
    }),
  );
  throw new SvcError(
    fields.length > 0 ? 'field_unknown' : 'collection_unknown',
    `--drop ${flag}: no migration file creates it.`,
    {
      why: 'generate reads the migration files, not a database, and can drop only tables and fields that they create.',
      state: 'Nothing was written.',
      next: [...(near === undefined ? [] : [`Did you mean --drop ${shellQuote(near)}?`]), 'svc db schema pull'],
    },
  );
}
