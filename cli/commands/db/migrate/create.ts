import { Command, Option } from 'clipanion';
import { migrationFile, migrationFiles, migrationText } from '../../../../config/migration-files.ts';
import { writeNewFiles } from '../../../../config/new-files.ts';
import { nextTag } from '../../../../config/next-tag.ts';
import { nameOfTag } from '../../../../core/migration/tag.ts';
import type { Answer } from '../../../base.ts';
import { DatabaseCommand, ONE_DATABASE } from '../../../db/command.ts';

export default class Create extends DatabaseCommand {
  static override paths = [['db', 'migrate', 'create']];
  static override usage = Command.Usage({
    description: 'Writes an empty migration to edit.',
    details: 'For what the schema file cannot say: data, raw statements, a change in two steps.',
    examples: [
      ['As JSON', 'svc db migrate create backfill_names'],
      ['As TypeScript', 'svc db migrate create backfill_names --ts'],
    ],
  });

  override db = Option.String('--db', { description: ONE_DATABASE });
  name = Option.String({ required: true });
  typescript = Option.Boolean('--ts', false, { description: 'A TypeScript file with the migration builder.' });

  async run(): Promise<Answer> {
    const db = await this.oneTag('create');
    const { root } = await this.runtime();
    const tag = nextTag(this.name, new Date(), migrationFiles(root, db).at(-1)?.tag);
    const json = migrationFile(db, tag);
    const file = this.typescript ? json.replace(/json$/, 'ts') : json;
    const text = this.typescript
      ? builderText(tag)
      : migrationText(root, { tag, name: nameOfTag(tag), up: [], down: [] });
    writeNewFiles(root, [{ file, text }]);
    this.print(file);
    return { data: { database: db, tag, file }, nextActions: [`Edit ${file}, then: svc db migrate`] };
  }
}

function builderText(tag: string): string {
  return `import { migration } from '@svc/sdk';

export default migration('${tag}')
  // .addField('users', { name: 'nickname', type: 'string', length: 80 })
  // .raw('postgresql', 'CREATE VIEW …', { down: 'DROP VIEW …' })
  .build();
`;
}
