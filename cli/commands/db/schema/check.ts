import { Command, Option } from 'clipanion';
import { drift, withoutForeign } from '../../../../core/migration/drift.ts';
import { historyDisorder, settled } from '../../../../core/migration/order.ts';
import { historyModel } from '../../../../core/migration/run.ts';
import type { Answer } from '../../../base.ts';
import { DatabaseCommand } from '../../../db/command.ts';
import { eachDatabase } from '../../../db/each-database.ts';

export default class Check extends DatabaseCommand {
  static override paths = [['db', 'schema', 'check']];
  static override usage = Command.Usage({
    description: 'Compares the database with what its migrations made.',
    details:
      'Ends with 5 where they differ, and where files that were applied in another order than that of their tags made something else than they do on an empty database. Tables that svc neither made nor adopted are only named; --strict counts them too. Takes no lock and writes nothing.',
    examples: [
      ['Every database', 'svc db schema check'],
      ['Leaving out a table that another tool keeps', 'svc db schema check --ignore spatial_ref_sys'],
    ],
  });

  ignore = Option.Array('--ignore', [], { description: 'A table to leave out; may be repeated.' });

  strict = Option.Boolean('--strict', false, {
    description: 'Tables that svc does not manage, and foreign keys to them, are differences.',
  });

  async run(): Promise<Answer> {
    const databases = await eachDatabase(this, async (tag) => {
      const adapter = await this.connect(tag);
      const expected = await historyModel(adapter);
      const found = new Map(await adapter.connection.introspect());
      for (const table of this.ignore) if (!expected.has(table)) found.delete(table);
      const unmanaged = [...found.keys()].filter((name) => !expected.has(name));
      const managed = new Map([...found].filter(([name]) => expected.has(name)));
      const different = await drift(
        adapter.connection,
        expected,
        this.strict ? found : withoutForeign(managed, expected),
      );
      const disorder = await historyDisorder(adapter);
      await adapter.connection.close();
      const state = different.length > 0 ? 'DRIFT' : disorder.length > 0 ? 'ORDER' : 'OK';
      this.print(
        [
          `${state}  ${await this.label(tag)}`,
          ...different.map((line) => `  ${line}`),
          ...disorder.map((line) => `  the order of application: ${line}`),
        ].join('\n'),
      );
      if (!this.strict && unmanaged.length > 0) this.note(`  not managed by svc: ${unmanaged.join(', ')}`);
      return { differences: different, disorder, unmanaged };
    });
    const differ = databases.some((database) => database.differences.length > 0);
    const disorder = databases.flatMap((database) => database.disorder);
    return {
      data: { databases },
      ...(disorder.length > 0 && { code: 'order_conflict', exit: 5, nextActions: settled(disorder) }),
      ...(differ && {
        code: 'drift',
        exit: 5,
        nextActions: ['Undo the change by hand, or take it over: svc db schema pull, then svc db migrate baseline'],
      }),
    };
  }
}
