import { Command, Option } from 'clipanion';
import { lintLines, lintMigrations } from '../../../../config/load/lint.ts';
import {
  changedBeforeCreated,
  type GeneratedMigration,
  generate,
  replayFiles,
} from '../../../../config/project/generate.ts';
import { formatMigration } from '../../../../config/project/migration-files.ts';
import { assertObjectFolders, readObjectFiles } from '../../../../config/project/object-files.ts';
import { readSchemaFile, SCHEMA_FILE, type SchemaEntry } from '../../../../config/project/schema-file.ts';
import { writeNewFiles } from '../../../../config/project/write-files.ts';
import type { Dialect } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { UndecidedRename } from '../../../../core/schema/rename/undecided.ts';
import type { CommandResult } from '../../../base.ts';
import { DatabaseCommand } from '../../../db/command.ts';
import { planData, planText } from '../../../db/plan-text.ts';
import { plural } from '../../../output.ts';
import { canPrompt, choose } from '../../../prompt.ts';

type LintedMigration = GeneratedMigration & { readonly lint: readonly string[]; readonly dialect: Dialect };

export default class Generate extends DatabaseCommand {
  static override paths = [['db', 'schema', 'generate']];
  static override usage = Command.Usage({
    description: 'Generates migrations from changes in the schema file and the files of objects.',
    details:
      'Compares svc/database/schema.json and svc/database/objects/ with the migration files, without connecting to a database. If a removed name may have been renamed, use --rename or --drop, or answer the prompt.',
    examples: [
      ['From svc/database/schema.json', 'svc db schema generate'],
      ['Rename a field', 'svc db schema generate --rename users.name:full_name'],
      [
        'Keep both names until no program uses the old one',
        'svc db schema generate --rename users.name:full_name --expand',
      ],
      ['Drop a field and name the migration', 'svc db schema generate --drop users.age --name drop_age'],
    ],
  });

  name = Option.String('--name', { description: 'The name of the migration. Default: derived from the change.' });
  rename = Option.Array('--rename', [], {
    description: '<table>.<old field>:<new field> or <old table>:<new table>. Repeatable.',
  });
  drop = Option.Array('--drop', [], {
    description: 'A table or <table>.<field> to drop, not rename. Repeatable.',
  });
  concurrently = Option.Boolean('--concurrently', false, {
    description: 'Builds new indexes of existing tables without blocking writes.',
  });
  expand = Option.Boolean('--expand', false, {
    description: 'Writes two migrations for a renamed field: one adds the new name, one drops the old one later.',
  });
  dryRun = Option.Boolean('--dry-run', false, { description: 'Prints the statements without writing files.' });

  async run(): Promise<CommandResult> {
    const { root, databases } = await this.runtime();
    const tags = await this.databaseTags();
    const entries = await readSchemaFile(root, databases);
    assertObjectFolders(root, databases);
    this.#assertSingleDatabase(tags.filter((tag) => entries.has(tag)));
    const generated: (LintedMigration & { readonly database: string })[] = [];
    for (const tag of tags) {
      const entry = entries.get(tag);
      if (!entry) this.#skip(tag);
      else for (const one of await this.#generate(tag, entry)) generated.push({ database: tag, ...one });
    }
    if (generated.length === 0) {
      this.print(`Nothing to generate: the migration files match ${SCHEMA_FILE}.`);
      return { data: { migrations: [] } };
    }
    if (!this.dryRun)
      writeNewFiles(
        root,
        generated.map(({ file, migration }) => ({ file, text: formatMigration(root, migration) })),
      );
    this.#print(generated);
    const migrations = generated.map(({ database, file, migration, statements, risks, rollbackRisks, lint }) => ({
      database,
      file,
      migration,
      dataDependentRisks: risks,
      rollbackRisks,
      lint,
      plan: planData([{ migration, statements }]),
    }));
    return { data: { migrations, written: !this.dryRun }, nextActions: this.dryRun ? [] : ['svc db migrate'] };
  }

  async #generate(tag: string, entry: SchemaEntry): Promise<LintedMigration[]> {
    const runtime = await this.runtime();
    const { root, dialectOf } = runtime;
    const dialect = await dialectOf(tag);
    const files = await this.migrations(tag);
    const replayed = replayFiles(files, dialect.name);
    const generated = await generate({
      dialect,
      files,
      replayed,
      entry,
      objects: readObjectFiles(root, tag, dialect),
      database: runtime.database(tag),
      now: new Date(),
      rename: this.rename,
      drop: this.drop,
      concurrently: this.concurrently,
      expand: this.expand,
      ...(this.name !== undefined && { name: this.name }),
      ...(canPrompt(this) && { promptRename: (pairs) => this.#askRename(pairs) }),
    });
    for (const line of changedBeforeCreated(replayed, (name) => entry.fieldsOf(name) !== undefined)) this.warn(line);
    if (generated.length === 0) return [];
    const added = new Set(generated.map(({ migration }) => migration));
    const { findings } = await lintMigrations(
      runtime,
      tag,
      [...files.map(({ migration }) => migration), ...added],
      (migration) => added.has(migration),
    );
    return generated.map((one) => ({ ...one, dialect, lint: lintLines(findings, one.migration.tag) }));
  }

  #askRename(pairs: readonly UndecidedRename[]): Promise<UndecidedRename | 'drop'> {
    const [{ kind, collection, from, ambiguity }] = pairs as readonly [UndecidedRename];
    const old = kind === 'collection' ? `The table "${from}"` : `The field "${collection}.${from}"`;
    const isDeclared = ambiguity === 'oldNameDeclared';
    return choose<UndecidedRename | 'drop'>(
      this,
      {
        message: `${old} ${isDeclared ? 'still exists, but is a "renamedFrom" of another name' : 'was removed'}. What happened to it?`,
        flag: '--rename or --drop',
      },
      [
        ...pairs.map((pair) => ({ name: renameChoice(pair), value: pair })),
        { name: isDeclared ? 'not renamed: it keeps its data' : 'dropped, with its data', value: 'drop' as const },
      ],
    );
  }

  #assertSingleDatabase(tags: readonly string[]): void {
    if (tags.length < 2 || (this.rename.length === 0 && this.drop.length === 0)) return;
    throw new SvcError('database_ambiguous', '--rename and --drop need a single database.', {
      why: `The schema file has entries for ${tags.join(', ')}.`,
      state: 'Nothing was written.',
      next: tags.map((tag) => `--db ${tag}`),
    });
  }

  #skip(tag: string): void {
    if (this.db !== undefined) {
      throw new SvcError('schema_invalid', `${SCHEMA_FILE} has no entry for "${tag}".`, {
        state: 'Nothing was written.',
        next: [`Add { "db": "${tag}", "tables": { … } } to it.`],
        where: SCHEMA_FILE,
      });
    }
    this.note(`${SCHEMA_FILE} has no entry for "${tag}"; skipped.`);
  }

  #print(generated: readonly LintedMigration[]): void {
    if (this.dryRun) {
      this.print(planText(`${plural(generated.length, 'migration')} to generate`, generated, this.context.stdout));
      return;
    }
    for (const { file, migration, statements, risks, rollbackRisks, unedited, lint } of generated) {
      this.print(file);
      for (const why of risks) this.warn(`${migration.tag}: ${why}; the migration then fails`);
      for (const why of rollbackRisks)
        this.warn(
          `${migration.tag}: on rollback, ${why}; to allow a rollback, make it optional in an earlier migration`,
        );
      for (const text of unedited) this.warn(`${migration.tag}: ${text}`);
      for (const loss of migration.lossy ?? []) this.warn(`${migration.tag}: ${loss}`);
      if (migration.irreversible !== undefined)
        this.warn(`${migration.tag} cannot be rolled back: ${migration.irreversible}`);
      if (statements.some(({ destructive }) => destructive))
        this.warn(`${migration.tag} destroys data: migrate prompts for confirmation or needs --allow-destructive`);
      for (const line of lint) this.note(`lint ${line}`);
    }
  }
}

function renameChoice({ to, from, ambiguity }: UndecidedRename): string {
  if (ambiguity === 'newNameExists') return `renamed to "${to}"; the previous "${to}" is dropped, with its data`;
  return `renamed to "${to}"${ambiguity === 'oldNameDeclared' ? `; "${from}" starts empty` : ''}`;
}
