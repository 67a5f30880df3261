import { Command, Option } from 'clipanion';
import { formatMigration, migrationFiles, migrationPath } from '../../../../config/project/migration-files.ts';
import { writeNewFiles } from '../../../../config/project/write-files.ts';
import { exportMigrations } from '../../../../core/migration/order.ts';
import { unknownMigrationError } from '../../../../core/migration/reconcile.ts';
import type { CommandResult } from '../../../base.ts';
import { DatabaseCommand, SINGLE_DATABASE } from '../../../db/command.ts';

export default class Export extends DatabaseCommand {
  static override paths = [['db', 'migrate', 'export']];
  static override usage = Command.Usage({
    description: 'Writes migration files for migrations that are only in the history.',
    details: 'These are migrations of the API, and those whose file was lost. Existing files are not changed.',
    examples: [
      ['All of them', 'svc db migrate export'],
      ['One', 'svc db migrate export 20261120_103000_orders'],
    ],
  });

  override db = Option.String('--db', { description: SINGLE_DATABASE });
  tag = Option.String({ required: false });

  async run(): Promise<CommandResult> {
    const database = await this.singleTag('export');
    const { root } = await this.runtime();
    const inFiles = new Set(migrationFiles(root, database).map(({ tag }) => tag));
    const { migrations, outOfOrder } = await exportMigrations(await this.connect(database), inFiles);
    const selected = migrations.filter(({ tag }) => this.tag === undefined || tag === this.tag);
    if (this.tag !== undefined && selected.length === 0 && !inFiles.has(this.tag)) {
      throw unknownMigrationError(this.tag, 'The history has no completed migration with this tag.');
    }
    const files = selected.map((migration) => ({
      file: migrationPath(database, migration.tag),
      text: formatMigration(root, migration),
    }));
    writeNewFiles(root, files);
    this.print(
      files.length === 0 ? 'Nothing to export: every migration has a file.' : files.map(({ file }) => file).join('\n'),
    );
    const warnings = files.length > 0 ? outOfOrder : [];
    for (const line of warnings)
      this.warn(`Files run in the order of their tags, not in the order they were applied: ${line}`);
    return {
      data: { database, files: files.map(({ file }) => file), outOfOrder: warnings },
      ...(warnings.length > 0 && {
        nextActions: [
          'Give the migration that was applied later a newer tag: rename the file, and change "tag" in it',
          'Then remove the old tag from the history: svc db migrate resolve <tag> --forget',
          'svc db migrate baseline    records it under the new tag',
        ],
      }),
    };
  }
}
