import { Command, Option } from 'clipanion';
import { baseline } from '../../../../core/migration/baseline.ts';
import type { Answer } from '../../../base.ts';
import { ONE_DATABASE } from '../../../db/command.ts';
import { MigratorCommand } from '../../../db/migrator-command.ts';
import { counted } from '../../../db/words.ts';

export default class Baseline extends MigratorCommand {
  static override paths = [['db', 'migrate', 'baseline']];
  static override usage = Command.Usage({
    description: 'Records migrations as applied without running them.',
    details:
      'For a database that has the tables already. What the migrations would make is compared with what is there first.',
    examples: [
      ['After svc db schema pull', 'svc db migrate baseline'],
      ['Up to one migration', 'svc db migrate baseline --to 20261120_103000_orders'],
    ],
  });

  override db = Option.String('--db', { description: ONE_DATABASE });
  to = Option.String('--to', { description: 'The last migration to record.' });
  yes = Option.Boolean('--yes,-y', false, { description: 'Lets into a protected environment.' });

  async run(): Promise<Answer> {
    const database = await this.oneTag('baseline');
    await this.refuseProtected(this.yes);
    const defined = await this.migrations(database);
    const { tags } = await baseline(await this.connect(database), defined, {
      signal: this.signal,
      ...(this.to !== undefined && { to: this.to }),
      ...this.lock,
    });
    const label = await this.label(database);
    for (const tag of tags) this.note(`  ${tag}`);
    this.print(
      tags.length === 0
        ? `Nothing to record in ${label}.`
        : `${counted(tags.length, 'migration')} recorded as applied in ${label}.`,
    );
    return { data: { database, tags } };
  }
}
