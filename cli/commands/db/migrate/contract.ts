import { Command } from 'clipanion';
import Migrate from '../migrate.ts';

export default class Contract extends Migrate {
  static override paths = [['db', 'migrate', 'contract']];
  static override usage = Command.Usage({
    description: 'Drops the old names of fields that were renamed with --expand.',
    details:
      'Applies the pending migrations with "contracts", which svc db migrate leaves. First deploy programs that use only the new names. Fails, before it changes anything, if the two fields differ in a row. Its rollback brings the old field back, with its values.',
    examples: [
      ['Drop the old names', 'svc db migrate contract'],
      ['Only show the statements', 'svc db migrate contract --dry-run'],
    ],
  });

  protected override readonly contract = true;
}
