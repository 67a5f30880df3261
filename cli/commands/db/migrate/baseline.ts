import { Command, Option } from 'clipanion';
import { baseline } from '../../../../core/migration/baseline.ts';
import type { CommandResult } from '../../../base.ts';
import { MigratorCommand, SINGLE_DATABASE } from '../../../db/command.ts';
import { plural } from '../../../output.ts';

export default class Baseline extends MigratorCommand {
  static override paths = [['db', 'migrate', 'baseline']];
  static override usage = Command.Usage({
    description: 'Records migrations as applied without running them.',
    details: 'For a database that already has the tables. First compares the migrations with the database.',
    examples: [
      ['After svc db schema pull', 'svc db migrate baseline'],
      ['Up to one migration', 'svc db migrate baseline --to 20261120_103000_orders'],
    ],
  });

  override db = Option.String('--db', { description: SINGLE_DATABASE });
  to = Option.String('--to', { description: 'The last migration to record.' });
  yes = Option.Boolean('-y,--yes', false, { description: 'Allows a protected environment.' });

  async run(): Promise<CommandResult> {
    const database = await this.singleTag('baseline');
    await this.assertNotProtected(this.yes);
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
        : `${plural(tags.length, 'migration')} recorded as applied in ${label}.`,
    );
    return { data: { database, tags } };
  }
}
