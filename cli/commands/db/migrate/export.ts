import { Command, Option } from 'clipanion';
import { migrationFile, migrationFiles, migrationText } from '../../../../config/migration-files.ts';
import { writeNewFiles } from '../../../../config/new-files.ts';
import { exportMigrations } from '../../../../core/migration/export.ts';
import { unknownTag } from '../../../../core/migration/planning.ts';
import type { Answer } from '../../../base.ts';
import { DatabaseCommand, ONE_DATABASE } from '../../../db/command.ts';

export default class Export extends DatabaseCommand {
  static override paths = [['db', 'migrate', 'export']];
  static override usage = Command.Usage({
    description: 'Writes migrations of the history that have no file as files.',
    details: 'Those the API made, and those whose file was lost. A file that exists is kept as it is.',
    examples: [
      ['All of them', 'svc db migrate export'],
      ['One', 'svc db migrate export 20261120_103000_orders'],
    ],
  });

  override db = Option.String('--db', { description: ONE_DATABASE });
  tag = Option.String({ required: false });

  async run(): Promise<Answer> {
    const database = await this.oneTag('export');
    const { root } = await this.runtime();
    const inFiles = new Set(migrationFiles(root, database).map(({ tag }) => tag));
    const { migrations, disorder } = await exportMigrations(await this.connect(database), inFiles);
    const wanted = migrations.filter(({ tag }) => this.tag === undefined || tag === this.tag);
    if (this.tag !== undefined && wanted.length === 0 && !inFiles.has(this.tag)) {
      throw unknownTag(this.tag, 'It is not among the completed migrations of the history.');
    }
    const files = wanted.map((migration) => ({
      file: migrationFile(database, migration.tag),
      text: migrationText(root, migration),
    }));
    writeNewFiles(root, files);
    this.print(
      files.length === 0
        ? 'Nothing to export: every migration has its file.'
        : files.map(({ file }) => file).join('\n'),
    );
    const told = files.length > 0 ? disorder : [];
    for (const line of told) this.warn(`Files run in the order of their tags, not of application: ${line}`);
    return {
      data: { database, files: files.map(({ file }) => file), disorder: told },
      ...(told.length > 0 && {
        nextActions: [
          'Give the one that was applied later a newer tag: the name of its file, and tag in it',
          'Then, with its old tag: svc db migrate resolve <tag> --forget',
          'svc db migrate baseline    records it under the new one',
        ],
      }),
    };
  }
}
