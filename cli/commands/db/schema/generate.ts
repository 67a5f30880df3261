import { Command, Option } from 'clipanion';
import { type Generated, generate } from '../../../../config/generate.ts';
import { migrationText, readMigrations } from '../../../../config/migration-files.ts';
import { writeNewFiles } from '../../../../config/new-files.ts';
import type { SchemaEntry } from '../../../../config/schema-entry.ts';
import { readSchemaFile, SCHEMA_FILE } from '../../../../config/schema-file.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { UndecidedRename } from '../../../../core/schema/rename.ts';
import { canAsk, choose } from '../../../ask.ts';
import type { Answer } from '../../../base.ts';
import { DatabaseCommand } from '../../../db/command.ts';
import { planData, planText } from '../../../db/plan-text.ts';
import { counted } from '../../../db/words.ts';

export default class Generate extends DatabaseCommand {
  static override paths = [['db', 'schema', 'generate']];
  static override usage = Command.Usage({
    description: 'Writes migrations for what the schema file says and the migration files do not make yet.',
    details:
      'Connects to no database. A name that went and one like it that came are a rename or not: the flags say which, or a question does.',
    examples: [
      ['From svc/database/schema.json', 'svc db schema generate'],
      ['A field was renamed', 'svc db schema generate --rename users.name:full_name'],
      ['Another one was dropped', 'svc db schema generate --drop users.age --name forget_age'],
    ],
  });

  name = Option.String('--name', { description: 'The name in the tag, instead of one derived from the change.' });
  rename = Option.Array('--rename', [], {
    description: '<table>.<old field>:<new field> or <old table>:<new table>; may be repeated.',
  });
  drop = Option.Array('--drop', [], {
    description: 'A table or <table>.<field> that goes and is not renamed; may be repeated.',
  });
  concurrently = Option.Boolean('--concurrently', false, {
    description: 'Builds new indexes of existing tables without blocking their use.',
  });
  dryRun = Option.Boolean('--dry-run', false, { description: 'Prints the statements and writes nothing.' });

  async run(): Promise<Answer> {
    const { root, databases } = await this.runtime();
    const tags = await this.tags();
    const entries = await readSchemaFile(root, databases);
    this.#refuseAmbiguous(tags.filter((tag) => entries.has(tag)));
    const generated: (Generated & { readonly database: string })[] = [];
    for (const tag of tags) {
      const entry = entries.get(tag);
      if (!entry) this.#skip(tag);
      else for (const one of await this.#generate(root, tag, entry)) generated.push({ database: tag, ...one });
    }
    if (generated.length === 0) {
      this.print(`Nothing to generate: the migration files make what ${SCHEMA_FILE} says.`);
      return { data: { migrations: [] } };
    }
    if (!this.dryRun)
      writeNewFiles(
        root,
        generated.map(({ file, migration }) => ({ file, text: migrationText(root, migration) })),
      );
    this.#tell(generated);
    const migrations = generated.map(({ database, file, migration, statements, refusable, refusableBack }) => ({
      database,
      file,
      migration,
      refusable,
      refusableBack,
      plan: planData([{ migration, statements }]),
    }));
    return { data: { migrations, written: !this.dryRun }, nextActions: this.dryRun ? [] : ['svc db migrate'] };
  }

  async #generate(root: string, tag: string, entry: SchemaEntry): Promise<Generated[]> {
    return generate({
      dialect: await (await this.runtime()).dialectOf(tag),
      files: await readMigrations(root, tag),
      entry,
      at: new Date(),
      rename: this.rename,
      drop: this.drop,
      concurrently: this.concurrently,
      ...(this.name !== undefined && { name: this.name }),
      ...(canAsk(this) && { decide: (pairs) => this.#decide(pairs) }),
    });
  }

  #decide(pairs: readonly UndecidedRename[]): Promise<UndecidedRename | 'drop'> {
    const [{ kind, collection, from, doubt }] = pairs as readonly [UndecidedRename];
    const old = kind === 'collection' ? `The table "${from}"` : `The field "${collection}.${from}"`;
    const stays = doubt === 'stays';
    return choose<UndecidedRename | 'drop'>(
      this,
      {
        message: `${old} ${stays ? 'stays and is a "renamedFrom"' : 'is gone'}. What became of it?`,
        flag: '--rename or --drop',
      },
      [
        ...pairs.map((pair) => ({ name: becoming(pair), value: pair })),
        { name: stays ? 'nothing: it keeps its data' : 'dropped, with its data', value: 'drop' as const },
      ],
    );
  }

  #refuseAmbiguous(tags: readonly string[]): void {
    if (tags.length < 2 || (this.rename.length === 0 && this.drop.length === 0)) return;
    throw new SvcError('database_ambiguous', '--rename and --drop need one database.', {
      why: `The schema file has tables of ${tags.join(', ')}.`,
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
    this.note(`${SCHEMA_FILE} has no entry for "${tag}": left alone.`);
  }

  #tell(generated: readonly (Generated & { readonly database: string })[]): void {
    if (this.dryRun) {
      this.print(planText(`${counted(generated.length, 'migration')} to generate`, generated, this.context.stdout));
      return;
    }
    for (const { file, migration, statements, refusable, refusableBack } of generated) {
      this.print(file);
      for (const why of refusable) this.warn(`${migration.tag}: ${why}; migrate refuses it then`);
      for (const why of refusableBack)
        this.warn(
          `${migration.tag}: back again, ${why}; made optional in a migration before this one, it could come back`,
        );
      for (const loss of migration.lossy ?? []) this.warn(`${migration.tag}: ${loss}`);
      if (migration.irreversible !== undefined)
        this.warn(`${migration.tag} has no way back: ${migration.irreversible}`);
      if (statements.some(({ destructive }) => destructive))
        this.warn(`${migration.tag} destroys data: migrate will ask, or wants --allow-destructive`);
    }
  }
}

function becoming({ to, from, doubt }: UndecidedRename): string {
  if (doubt === 'replaces') return `renamed to "${to}", and the "${to}" of before dropped, with its data`;
  return `renamed to "${to}"${doubt === 'stays' ? `, and "${from}" begins empty` : ''}`;
}
