import { Command, Option } from 'clipanion';
import { formatMigration, migrationFiles, migrationPath } from '../../../../config/project/migration-files.ts';
import { nextTag } from '../../../../config/project/migration-name.ts';
import { writeNewFiles } from '../../../../config/project/write-files.ts';
import { SvcError } from '../../../../core/errors.ts';
import { nameOfTag } from '../../../../core/migration/tag.ts';
import type { CommandResult } from '../../../base.ts';
import { DatabaseCommand, SINGLE_DATABASE } from '../../../db/command.ts';

export default class Create extends DatabaseCommand {
  static override paths = [['db', 'migrate', 'create']];
  static override usage = Command.Usage({
    description: 'Creates an empty migration to edit.',
    details: 'For changes that the schema file cannot express: data, raw statements, a change in two steps.',
    examples: [
      ['As JSON', 'svc db migrate create backfill_names'],
      ['As TypeScript', 'svc db migrate create backfill_names --ts'],
    ],
  });

  override db = Option.String('--db', { description: SINGLE_DATABASE });
  name = Option.String({ required: true });
  typescript = Option.Boolean('--ts', false, {
    description: 'Creates a TypeScript file that uses the migration builder.',
  });

  async run(): Promise<CommandResult> {
    assertName(this.name);
    const db = await this.singleTag('create');
    const { root } = await this.runtime();
    const tag = nextTag(this.name, new Date(), migrationFiles(root, db).at(-1)?.tag);
    const json = migrationPath(db, tag);
    const file = this.typescript ? json.replace(/json$/, 'ts') : json;
    const text = this.typescript
      ? builderText(tag)
      : formatMigration(root, { tag, name: nameOfTag(tag), up: [], down: [] });
    writeNewFiles(root, [{ file, text }]);
    this.print(file);
    return { data: { database: db, tag, file }, nextActions: [`Edit ${file}, then: svc db migrate`] };
  }
}

/** Throws `usage` if nothing of the name could be in a tag. */
function assertName(name: string): void {
  if (/[A-Za-z0-9]/.test(name)) return;
  throw new SvcError('usage', `A migration cannot have the name "${name}".`, {
    why: 'The name becomes part of a file name and a tag, which keep A-Z a-z 0-9 _ - of it.',
    state: 'Nothing was written.',
    next: ['svc db migrate create <name>'],
  });
}

function builderText(tag: string): string {
  return `import { migration } from '@svc/sdk';

export default migration('${tag}')
  // .addField('users', { name: 'nickname', type: 'string', length: 80 })
  // .raw('postgresql', 'CREATE VIEW …', { down: 'DROP VIEW …' })
  .build();
`;
}
