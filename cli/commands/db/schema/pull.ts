import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, Option } from 'clipanion';
import { generate, modelOfFiles } from '../../../../config/generate.ts';
import { type MigrationFile, migrationText } from '../../../../config/migration-files.ts';
import { replaceFile, writeNewFiles } from '../../../../config/new-files.ts';
import { pulled } from '../../../../config/pull.ts';
import { schemaEntry } from '../../../../config/schema-entry.ts';
import { readSchemaFile, SCHEMA_FILE, schemaFileWith } from '../../../../config/schema-file.ts';
import type { Connection, Dialect, Unreadable } from '../../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { drift, withoutForeign } from '../../../../core/migration/drift.ts';
import { Ledger } from '../../../../core/migration/ledger.ts';
import { reconcile, refuseTrouble } from '../../../../core/migration/reconcile.ts';
import { retold } from '../../../../core/migration/retelling.ts';
import { type StatusEntry, status } from '../../../../core/migration/status.ts';
import type { SchemaModel } from '../../../../core/schema/model.ts';
import type { Answer } from '../../../base.ts';
import { DatabaseCommand, ONE_DATABASE } from '../../../db/command.ts';
import { counted } from '../../../db/words.ts';

const UNTOUCHED =
  'All of this stays in the database untouched, but will not exist where the migrations are run anew. A raw migration can carry it.';

export default class Pull extends DatabaseCommand {
  static override paths = [['db', 'schema', 'pull']];
  static override usage = Command.Usage({
    description:
      'Writes the schema file, and a migration for what no migration file makes, from a database that exists.',
    details:
      'Changes nothing in the database. Afterwards svc db migrate baseline records the migration as applied, and svc db schema generate finds nothing to do. A schema file that says something else is kept under another name.',
    examples: [
      ['An existing database', 'svc db schema pull'],
      ['With a name for the migration', 'svc db schema pull --db main --name as_it_was'],
    ],
  });

  override db = Option.String('--db', { description: ONE_DATABASE });
  name = Option.String('--name', { description: 'The name in the tag of the migration.' });
  rename = Option.Array('--rename', [], {
    description: '<table>.<old field>:<new field> or <old table>:<new table>; may be repeated.',
  });
  drop = Option.Array('--drop', [], {
    description: 'A table or <table>.<field> that is gone and was not renamed; may be repeated.',
  });

  async run(): Promise<Answer> {
    const tag = await this.oneTag('pull');
    const runtime = await this.runtime();
    const { root } = runtime;
    const files = await this.migrations(tag);
    const adapter = await this.connect(tag);
    const { entries } = await status(adapter, files);
    refuseTrouble(reconcile(files, await Ledger.read(adapter.connection)));
    await this.#refusePending(tag, entries.filter(({ state }) => state !== 'completed').length);
    refuseUnwritten(entries.filter(({ origin, file }) => origin !== 'file' && file === undefined));
    const model = modelOfFiles(files, true);
    const { connection } = adapter;
    const found = await connection.introspect();
    const drifted = await drift(connection, model, only(withoutForeign(found, model), model));
    const { declaration, leftOut, warnings } = await pulled({
      dialect: adapter.dialect,
      found,
      files: model,
      same: async ({ name }) => drifted.length === 0 || (await this.#same(connection, name, model, found)),
    });
    const lost = (await connection.unreadable()).filter(
      ({ collection }) => collection === undefined || !leftOut.includes(collection),
    );
    const untouched = [...warnings, ...lost.map(told)];
    for (const line of untouched) this.warn(line);
    if (untouched.length > 0) this.warn(UNTOUCHED);
    const generated = await generate({
      dialect: adapter.dialect,
      files,
      entry: schemaEntry(tag, declaration),
      at: new Date(),
      rename: this.rename,
      drop: this.drop,
      adopting: true,
      ...(this.name !== undefined && { name: this.name }),
    });
    const early = changedBefore(files, declaration.tables);
    for (const line of early) this.warn(line);
    const stays = generated.length === 0 && (await this.#says(tag, adapter.dialect, files));
    const schema = await schemaFileWith(root, tag, declaration);
    const kept = stays ? undefined : this.#keep(root, schema.text);
    writeNewFiles(root, [
      ...generated.map(({ file, migration }) => ({ file, text: migrationText(root, migration) })),
      ...(kept ? [kept] : []),
    ]);
    if (!stays) replaceFile(root, schema);
    for (const { file } of [...generated, schema]) this.print(file);
    if (kept) this.note(`The schema file that was there is kept as ${kept.file}`);
    this.note(`${counted(Object.keys(declaration.tables).length, 'table')} of ${await this.label(tag)}`);
    return {
      data: {
        database: tag,
        schema: schema.file,
        kept: kept?.file ?? null,
        migrations: generated.map(({ file }) => file),
        tables: Object.keys(declaration.tables),
        leftOut,
        warnings: [...untouched, ...early],
      },
      nextActions: generated.length > 0 ? ['svc db migrate baseline'] : [],
    };
  }

  /** Whether the schema file that is there says what the migration files make: in its own words, which stay. */
  async #says(tag: string, dialect: Dialect, files: readonly MigrationFile[]): Promise<boolean> {
    const { root, databases } = await this.runtime();
    if (!existsSync(join(root, SCHEMA_FILE))) return false;
    try {
      const entry = (await readSchemaFile(root, databases)).get(tag);
      return (
        entry !== undefined &&
        (await generate({ dialect, files, entry, at: new Date(), rename: [], drop: [] })).length === 0
      );
    } catch (error) {
      if (isSvcError(error)) return false;
      throw error;
    }
  }

  async #same(connection: Connection, name: string, model: SchemaModel, found: SchemaModel): Promise<boolean> {
    const one = new Map([[name, true]]);
    return (await drift(connection, only(model, one), only(withoutForeign(found, model), one))).length === 0;
  }

  async #refusePending(tag: string, open: number): Promise<void> {
    if (open === 0) return;
    throw new SvcError(
      'pending',
      `${counted(open, 'migration')} of ${await this.label(tag)} ${open === 1 ? 'is' : 'are'} not applied.`,
      {
        why: 'What they make is not in the database yet: a migration from what is there would undo it.',
        state: 'Nothing was written.',
        next: ['svc db migrate', 'svc db migrate status'],
      },
    );
  }

  /** What a schema file said before, where it said something else. */
  #keep(root: string, text: string): { readonly file: string; readonly text: string } | undefined {
    const path = join(root, SCHEMA_FILE);
    if (!existsSync(path)) return undefined;
    const before = readFileSync(path, 'utf8');
    if (before === text) return undefined;
    const stamp = new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '_');
    return { file: SCHEMA_FILE.replace('.json', `.before_${stamp}.json`), text: before };
  }
}

/** What the API made would be made a second time by a file, which no baseline takes. */
function refuseUnwritten(entries: readonly StatusEntry[]): void {
  if (entries.length === 0) return;
  throw new SvcError(
    'origin_conflict',
    `${counted(entries.length, 'migration')} of the API ${entries.length === 1 ? 'is' : 'are'} in no file.`,
    {
      why: `The history has ${entries
        .map(({ tag }) => tag)
        .slice(0, 3)
        .join(', ')}${entries.length > 3 ? ' and more' : ''}: a migration from what is there would repeat them.`,
      state: 'Nothing was written.',
      next: ['svc db migrate export', 'svc db schema pull'],
    },
  );
}

function told({ collection, field, what }: Unreadable): string {
  if (collection === undefined) return `The database ${what}.`;
  return field === undefined ? `The table "${collection}" ${what}.` : `The field "${collection}.${field}" ${what}.`;
}

/** Tables that were there when files changed them, and that a later file or this pull makes. */
function changedBefore(files: readonly MigrationFile[], tables: object): string[] {
  return [...retold(files.map(({ migration }) => migration)).foreign]
    .filter((name) => name in tables)
    .map((name) => `Migrations change the table "${name}" before one creates it: on an empty database they fail.`);
}

function only(model: SchemaModel, names: { has(table: string): boolean }): SchemaModel {
  return new Map([...model].filter(([name]) => names.has(name)));
}
