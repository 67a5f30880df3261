import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, Option } from 'clipanion';
import { declarableSchema } from '../../../../config/project/declarable-schema.ts';
import { changedBeforeCreated, generate, objectsFromFiles, replayFiles } from '../../../../config/project/generate.ts';
import { formatMigration, type MigrationFile } from '../../../../config/project/migration-files.ts';
import { backupObjectFiles, readObjectFiles, writeObjectFiles } from '../../../../config/project/object-files.ts';
import { readSchemaFile, SCHEMA_FILE, schemaEntry, schemaFileWith } from '../../../../config/project/schema-file.ts';
import { replaceFile, writeNewFiles } from '../../../../config/project/write-files.ts';
import type { Connection, Dialect } from '../../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { drift, introspectWhole, withoutUnknownReferences } from '../../../../core/migration/drift.ts';
import { History } from '../../../../core/migration/history.ts';
import { readObjects, unreadAmong, withServerTexts } from '../../../../core/migration/objects.ts';
import {
  type FindRawMention,
  type RawMade,
  rawMentions,
  withoutRawMade,
} from '../../../../core/migration/raw-mentions.ts';
import { assertReconciled } from '../../../../core/migration/reconcile.ts';
import { type StatusEntry, status } from '../../../../core/migration/status.ts';
import { type DatabaseObject, nameInTable, type ObjectModel } from '../../../../core/schema/database-object.ts';
import type { SchemaModel } from '../../../../core/schema/model.ts';
import type { CommandResult } from '../../../base.ts';
import { DatabaseCommand, SINGLE_DATABASE } from '../../../db/command.ts';
import {
  DECLARE_RAW_MADE,
  describeRawMade,
  describeUnsupported,
  describeUsingOthers,
} from '../../../db/drift-remedies.ts';
import { plural } from '../../../output.ts';

const NOT_IN_MIGRATIONS =
  'These objects stay in the database, but migrations do not create them in a new one. Add a raw migration for them if needed.';

export default class Pull extends DatabaseCommand {
  static override paths = [['db', 'schema', 'pull']];
  static override usage = Command.Usage({
    description: 'Writes the schema file, the files of objects and a migration from an existing database.',
    details:
      'Does not change the database. The migration creates everything that no migration file creates yet; svc db migrate baseline then records it as applied. If an existing schema file differs, it is saved under another name.',
    examples: [
      ['An existing database', 'svc db schema pull'],
      ['Name the migration', 'svc db schema pull --db main --name existing_tables'],
    ],
  });

  override db = Option.String('--db', { description: SINGLE_DATABASE });
  name = Option.String('--name', { description: 'The name of the migration. Default: derived from the change.' });
  rename = Option.Array('--rename', [], {
    description: '<table>.<old field>:<new field> or <old table>:<new table>. Repeatable.',
  });
  drop = Option.Array('--drop', [], {
    description: 'A table or <table>.<field> that was removed, not renamed. Repeatable.',
  });

  async run(): Promise<CommandResult> {
    const tag = await this.singleTag('pull');
    const runtime = await this.runtime();
    const { root } = runtime;
    const files = await this.migrations(tag);
    const target = await this.connect(tag);
    const { entries } = await status(target, files);
    await assertReconciled(target.connection, files, await History.read(target.connection));
    await this.#assertNonePending(tag, entries.filter(({ state }) => state !== 'completed').length);
    assertExported(entries.filter(({ origin, file }) => origin !== 'file' && file === undefined));
    const replayed = replayFiles(files, target.dialect.name, true);
    const { model } = replayed;
    const { connection } = target;
    const findRaw = rawMentions(
      files.map(({ migration }) => migration),
      target.dialect.name,
    );
    // The server answers the second while this process reads the first.
    const [catalog, foundObjects] = await Promise.all([introspectWhole(connection), readObjects(connection)]);
    const { found, rawMade } = withoutRawMade(catalog.model, await connection.normalize(model), findRaw);
    // A key to a table that is not in the files yet is a change: the table will be.
    const managed = withoutUnknownReferences(found, new Map([...found, ...model]));
    const drifted = await drift(connection, model, only(managed, model));
    const recorded = objectsFromFiles(files);
    const { after, rawMadeObjects, usingOthers } = await this.#objects(connection, recorded, foundObjects, findRaw);
    const adopt = async (untried: boolean) => {
      const declarable = await declarableSchema({
        dialect: target.dialect,
        found,
        files: model,
        unsupported: catalog.unsupported,
        isUnchanged: async ({ name }) =>
          drifted.length === 0 || (await this.#isUnchanged(connection, name, model, managed)),
        untried,
      });
      const generated = await generate({
        dialect: target.dialect,
        files,
        entry: schemaEntry(tag, declarable.declaration),
        objects: after,
        now: new Date(),
        rename: this.rename,
        drop: this.drop,
        adopting: true,
        replayed,
        ...(this.name !== undefined && { name: this.name }),
      });
      return { ...declarable, generated };
    };
    // Only if not all tables can be declared, each is tried alone: that takes as long again.
    const adopted = await adopt(true).catch((error: unknown) => {
      if (!isSvcError(error)) throw error;
      return adopt(false);
    });
    const { declaration, leftOut, kept, warnings, generated } = adopted;
    const unsupported = catalog.unsupported.filter(
      ({ collection }) => collection === undefined || !leftOut.includes(collection),
    );
    const omissions = [...warnings, ...unsupported.map(describeUnsupported), ...usingOthers.map(describeUsingOthers)];
    for (const line of omissions) this.warn(line);
    if (omissions.length > 0) this.warn(NOT_IN_MIGRATIONS);
    const rawWarnings = [...rawMade, ...rawMadeObjects].map(describeRawMade);
    for (const line of rawWarnings) this.warn(line);
    const orderWarnings = changedBeforeCreated(replayed, (name) => name in declaration.tables);
    for (const line of orderWarnings) this.warn(line);
    const isUpToDate = generated.length === 0 && (await this.#isUpToDate(tag, target.dialect, files));
    const schema = await schemaFileWith(root, tag, declaration);
    const stamp = new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '_');
    const backup = isUpToDate ? undefined : this.#backup(root, schema.text, stamp);
    const objectFiles = readObjectFiles(root, tag, target.dialect);
    const wanted = new Map([...after, ...unreadAmong(connection, objectFiles)]);
    const backups = [
      ...(backup ? [backup] : []),
      ...backupObjectFiles(tag, stamp, { dialect: target.dialect, files: objectFiles, after: wanted, recorded }),
    ];
    writeNewFiles(root, [
      ...generated.map(({ file, migration }) => ({ file, text: formatMigration(root, migration) })),
      ...backups,
    ]);
    if (!isUpToDate) replaceFile(root, schema);
    const written = writeObjectFiles(root, tag, { dialect: target.dialect, before: objectFiles, after: wanted });
    for (const file of [...generated.map((one) => one.file), schema.file, ...written]) this.print(file);
    for (const { file } of backups) this.note(`What was there before was saved as ${file}`);
    const counts = [
      plural(Object.keys(declaration.tables).length, 'table'),
      ...(after.size > 0 ? [plural(after.size, 'object')] : []),
    ];
    this.note(`${counts.join(' and ')} of ${await this.label(tag)}`);
    return {
      data: {
        database: tag,
        schema: schema.file,
        backup: backup?.file ?? null,
        migrations: generated.map(({ file }) => file),
        tables: Object.keys(declaration.tables),
        objects: [...after.keys()],
        leftOut,
        kept,
        rawMade: [...rawMade, ...rawMadeObjects].map(({ name }) => name),
        warnings: [...omissions, ...rawWarnings, ...orderWarnings],
      },
      nextActions: [
        ...(generated.length > 0 ? ['svc db migrate baseline'] : []),
        ...(rawMade.length > 0 ? [DECLARE_RAW_MADE] : []),
      ],
    };
  }

  /**
   * The objects of the catalog, with the texts of the files where those mean the same; without what raw statements made, and what
   * an empty database would refuse.
   */
  async #objects(
    connection: Connection,
    before: ObjectModel,
    found: ObjectModel,
    findRaw: FindRawMention,
  ): Promise<{
    readonly after: ObjectModel;
    readonly rawMadeObjects: readonly RawMade[];
    readonly usingOthers: readonly DatabaseObject[];
  }> {
    const normal = await withServerTexts(connection, before, found);
    const after = new Map<string, DatabaseObject>(unreadAmong(connection, before));
    const rawMadeObjects: RawMade[] = [];
    const usingOthers: DatabaseObject[] = [];
    for (const [key, object] of found) {
      const known = before.get(key);
      const tag = known ? undefined : findRaw(nameInTable(object));
      if (tag !== undefined) rawMadeObjects.push({ name: key, tag });
      else if (!known && object.uses !== undefined) usingOthers.push(object);
      else after.set(key, known && normal.get(key)?.definition === object.definition ? known : object);
    }
    return { after, rawMadeObjects, usingOthers };
  }

  /** Whether the existing schema file matches the migration files; it is then left unchanged. */
  async #isUpToDate(tag: string, dialect: Dialect, files: readonly MigrationFile[]): Promise<boolean> {
    const { root, databases } = await this.runtime();
    if (!existsSync(join(root, SCHEMA_FILE))) return false;
    try {
      const entry = (await readSchemaFile(root, databases)).get(tag);
      return (
        entry !== undefined &&
        (await generate({ dialect, files, entry, now: new Date(), rename: [], drop: [] })).length === 0
      );
    } catch (error) {
      if (isSvcError(error)) return false;
      throw error;
    }
  }

  async #isUnchanged(connection: Connection, name: string, model: SchemaModel, found: SchemaModel): Promise<boolean> {
    const one = new Map([[name, true]]);
    return (await drift(connection, only(model, one), only(found, one))).length === 0;
  }

  async #assertNonePending(tag: string, open: number): Promise<void> {
    if (open === 0) return;
    throw new SvcError(
      'pending',
      `${plural(open, 'migration')} of ${await this.label(tag)} ${open === 1 ? 'is' : 'are'} not applied.`,
      {
        why: 'The database does not have their changes yet, and a migration from its current state would undo them.',
        state: 'Nothing was written.',
        next: [
          'svc db migrate',
          'If the tables exist already: svc db migrate baseline, or delete the pending files, then svc db schema pull',
          'svc db migrate status',
        ],
      },
    );
  }

  /** A copy of the existing schema file, if it differs. */
  #backup(root: string, text: string, stamp: string): { readonly file: string; readonly text: string } | undefined {
    const path = join(root, SCHEMA_FILE);
    if (!existsSync(path)) return undefined;
    const before = readFileSync(path, 'utf8');
    if (before === text) return undefined;
    return { file: SCHEMA_FILE.replace('.json', `.before_${stamp}.json`), text: before };
  }
}

/** Throws if API migrations have no file: a generated file would repeat them. */
function assertExported(entries: readonly StatusEntry[]): void {
  if (entries.length === 0) return;
  throw new SvcError(
    'origin_conflict',
    `${plural(entries.length, 'migration')} of the API ${entries.length === 1 ? 'has' : 'have'} no file.`,
    {
      why: `The history has ${entries
        .map(({ tag }) => tag)
        .slice(0, 3)
        .join(
          ', ',
        )}${entries.length > 3 ? ' and more' : ''}, and a migration from the current state would repeat ${entries.length === 1 ? 'it' : 'them'}.`,
      state: 'Nothing was written.',
      next: ['svc db migrate export', 'svc db schema pull'],
    },
  );
}

function only(model: SchemaModel, names: { has(table: string): boolean }): SchemaModel {
  return new Map([...model].filter(([name]) => names.has(name)));
}
