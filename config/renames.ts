import { SvcError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { quoted } from '../core/quoted.ts';
import type { Collection, SchemaModel } from '../core/schema/model.ts';
import { type Decisions, dropKey, type UndecidedRename } from '../core/schema/rename.ts';
import type { SchemaEntry } from './schema-entry.ts';

/** The flags that decide: `--rename users.name:full_name`, `--rename users:people`, `--drop users.name`. */
export function decisions(
  flags: { readonly rename: readonly string[]; readonly drop: readonly string[] },
  entry: SchemaEntry,
  before: SchemaModel,
): Decisions & { readonly renames: UndecidedRename[]; readonly drops: Set<string> } {
  const renames: UndecidedRename[] = [];
  // Tables first: a field is looked for in the table under its old name.
  const parsed = [...new Set(flags.rename)].map((flag) => ({ flag, table: tableRename(flag, entry, before) }));
  for (const { table } of parsed) if (table) renames.push(table);
  for (const { flag, table } of parsed) if (!table) renames.push(fieldRename(flag, entry, before, renames));
  const drops = new Set(flags.drop);
  refuseContradiction(renames, drops);
  for (const flag of drops) refuseDrop(flag, entry, before, renames);
  return { renames, drops };
}

/** Each old name becomes one thing, and each new one comes from one. */
function refuseContradiction(renames: readonly UndecidedRename[], drops: ReadonlySet<string>): void {
  const taken = new Set<string>();
  const gone = new Set(drops);
  for (const rename of renames) {
    const { kind, collection, from, to } = rename;
    const name = JSON.stringify([kind, collection, to]);
    const old = dropKey(rename);
    if (from === to || gone.has(old) || taken.has(name)) {
      throw new SvcError('usage', `--rename ${old}:${to} contradicts ${from === to ? 'itself' : 'another flag'}.`, {
        why: 'An old name is renamed once or dropped, and a new one has one old name.',
        state: 'Nothing was written.',
        next: [`--rename ${dropKey({ ...rename, from: '<old name>' })}:<new name>`],
      });
    }
    gone.add(old);
    taken.add(name);
  }
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
      const known = tableBefore(collection, before, tables);
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

/** What a table of the schema file was before; undefined where its name went to another one. */
function tableBefore(name: string, before: SchemaModel, renames: readonly UndecidedRename[]): Collection | undefined {
  const tables = renames.filter(({ kind }) => kind === 'collection');
  const origin = tables.find(({ to }) => to === name)?.from;
  if (origin === undefined && tables.some(({ from }) => from === name)) return undefined;
  return before.get(origin ?? name);
}

function refuseDrop(flag: string, entry: SchemaEntry, before: SchemaModel, renames: readonly UndecidedRename[]): void {
  const fields = cuts(flag, '.').flatMap(([table, field]) => {
    const known = tableBefore(table, before, renames);
    return known ? [{ table, field, known }] : [];
  });
  const known = fields.filter(({ field, known }) => known.fields.has(field));
  // What has the name now goes where another one gets it.
  const isGiven = (kind: UndecidedRename['kind'], collection: string, name: string) =>
    renames.some((one) => one.kind === kind && one.collection === collection && one.to === name);
  const stays = [
    ...(before.has(flag) ? [entry.fieldsOf(flag) !== undefined && !isGiven('collection', flag, flag)] : []),
    ...known.map(
      ({ table, field }) => entry.fieldsOf(table)?.includes(field) === true && !isGiven('field', table, field),
    ),
  ];
  if (stays.includes(false)) return;
  if (stays.length > 0) {
    throw new SvcError('usage', `--drop ${flag} does not fit the schema file, which has it.`, {
      why: 'What the schema file declares is not dropped.',
      state: 'Nothing was written.',
      next: ['Take it out of the schema file, or leave the flag away.'],
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
    `--drop ${flag}: no migration file created it.`,
    {
      why: 'generate sees the migration files and no database: it drops what they made and nothing else.',
      state: 'Nothing was written.',
      next: [...(near === undefined ? [] : [`Did you mean --drop ${quoted(near)}?`]), 'svc db schema pull'],
    },
  );
}
