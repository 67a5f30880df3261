import { Command, Option } from 'clipanion';
import { historyModel } from '../../../../core/migration/run.ts';
import { differences } from '../../../../core/schema/differences.ts';
import type { Answer } from '../../../base.ts';
import { DatabaseCommand } from '../../../db/command.ts';
import { eachDatabase } from '../../../db/each-database.ts';

export default class Check extends DatabaseCommand {
  static override paths = [['db', 'schema', 'check']];
  static override usage = Command.Usage({
    description: 'Compares the database with what its migrations made.',
    details: 'Ends with 5 where they differ. Takes no lock and writes nothing.',
    examples: [
      ['Every database', 'svc db schema check'],
      ['Leaving out a table that another tool keeps', 'svc db schema check --ignore spatial_ref_sys'],
    ],
  });

  ignore = Option.Array('--ignore', [], { description: 'A table to leave out; may be repeated.' });

  async run(): Promise<Answer> {
    const databases = await eachDatabase(this, async (tag) => {
      const adapter = await this.connect(tag);
      const expected = await adapter.connection.seen(await historyModel(adapter));
      const found = new Map(await adapter.connection.introspect());
      for (const table of this.ignore) if (!expected.has(table)) found.delete(table);
      const different = differences(expected, found);
      await adapter.connection.close();
      this.print(
        [
          `${different.length === 0 ? 'OK' : 'DRIFT'}  ${await this.label(tag)}`,
          ...different.map((line) => `  ${line}`),
        ].join('\n'),
      );
      return { differences: different };
    });
    const drift = databases.some((database) => database.differences.length > 0);
    return {
      data: { databases },
      ...(drift && {
        code: 'drift',
        exit: 5,
        nextActions: ['Undo the change by hand, or take it over: svc db schema pull, then svc db migrate baseline'],
      }),
    };
  }
}
