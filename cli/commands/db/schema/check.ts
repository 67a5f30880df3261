import { Command, Option } from 'clipanion';
import { drift, withoutUnknownReferences } from '../../../../core/migration/drift.ts';
import { historyModel } from '../../../../core/migration/history.ts';
import { nextStepsToAlign, readOrderDifferences } from '../../../../core/migration/order.ts';
import type { CommandResult } from '../../../base.ts';
import { DatabaseCommand, forEachDatabase } from '../../../db/command.ts';

export default class Check extends DatabaseCommand {
  static override paths = [['db', 'schema', 'check']];
  static override usage = Command.Usage({
    description: 'Compares the database with its applied migrations.',
    details:
      'Exits with 5 if they differ, or if migrations were applied out of order and would produce another schema on an empty database. Tables that svc does not manage are only listed, unless --strict is set. Takes no lock and writes nothing.',
    examples: [
      ['Every database', 'svc db schema check'],
      ['Ignore a table of another tool', 'svc db schema check --ignore spatial_ref_sys'],
    ],
  });

  ignore = Option.Array('--ignore', [], { description: 'A table to ignore. Repeatable.' });

  strict = Option.Boolean('--strict', false, {
    description: 'Counts tables that svc does not manage, and foreign keys to them, as differences.',
  });

  async run(): Promise<CommandResult> {
    const databases = await forEachDatabase(this, async (tag) => {
      const target = await this.connect(tag);
      const expected = await historyModel(target);
      const found = new Map(await target.connection.introspect());
      for (const table of this.ignore) if (!expected.has(table)) found.delete(table);
      const unmanaged = [...found.keys()].filter((name) => !expected.has(name));
      const managed = new Map([...found].filter(([name]) => expected.has(name)));
      const different = await drift(
        target.connection,
        expected,
        this.strict ? found : withoutUnknownReferences(managed, expected),
      );
      const outOfOrder = await readOrderDifferences(target);
      await target.connection.close();
      const state = different.length > 0 ? 'DRIFT' : outOfOrder.length > 0 ? 'ORDER' : 'OK';
      this.print(
        [
          `${state}  ${await this.label(tag)}`,
          ...different.map((line) => `  ${line}`),
          ...outOfOrder.map((line) => `  applied out of order: ${line}`),
        ].join('\n'),
      );
      if (!this.strict && unmanaged.length > 0) this.note(`  not managed by svc: ${unmanaged.join(', ')}`);
      return { differences: different, outOfOrder, unmanaged };
    });
    const differ = databases.some((database) => database.differences.length > 0);
    const outOfOrder = databases.flatMap((database) => database.outOfOrder);
    return {
      data: { databases },
      ...(outOfOrder.length > 0 && { code: 'order_conflict', exit: 5, nextActions: nextStepsToAlign(outOfOrder) }),
      ...(differ && {
        code: 'drift',
        exit: 5,
        nextActions: ['Revert the change manually, or adopt it: svc db schema pull, then svc db migrate baseline'],
      }),
    };
  }
}
