import { Command, Option } from 'clipanion';
import { drift, withoutUnknownReferences, withUnreadObjects } from '../../../../core/migration/drift.ts';
import { historyOrderDifferences, nextStepsToAlign } from '../../../../core/migration/order.ts';
import { type FindRawMention, rawMentions } from '../../../../core/migration/raw-mentions.ts';
import { readHistoryState, type StatusEntry } from '../../../../core/migration/status.ts';
import type { Target } from '../../../../core/migration/target.ts';
import { objectKey } from '../../../../core/schema/database-object.ts';
import type { SchemaModel } from '../../../../core/schema/model.ts';
import type { CommandResult } from '../../../base.ts';
import { DatabaseCommand, forEachDatabase } from '../../../db/command.ts';
import { compareObjects } from '../../../db/compare-objects.ts';
import { ADOPT, describeUnsupported, describeUsingOthers, driftRemedies } from '../../../db/drift-remedies.ts';
import { describeProblem, nextActions, statusResult } from '../../../db/status-text.ts';

export default class Check extends DatabaseCommand {
  static override paths = [['db', 'schema', 'check']];
  static override usage = Command.Usage({
    description: 'Compares the database with its applied migrations.',
    details:
      'Exits with 6 if a migration failed, 5 if they differ or if migrations were applied out of order and would produce another schema on an empty database, and 4 if a migration is running or was interrupted. Tables that svc does not manage are only listed, unless --strict is set. Takes no lock and writes nothing.',
    examples: [
      ['Every database', 'svc db schema check'],
      ['Ignore a table of another tool', 'svc db schema check --ignore spatial_ref_sys'],
    ],
  });

  ignore = Option.Array('--ignore', [], {
    description: 'A table, or an object such as view/totals, to ignore. Repeatable.',
  });

  strict = Option.Boolean('--strict', false, {
    description:
      'Counts tables and objects that svc does not manage, and foreign keys to them, as differences. An object that uses what migrations do not create is only listed.',
  });

  async run(): Promise<CommandResult> {
    const adopt: string[] = [];
    const databases = await forEachDatabase(this, async (tag) => {
      const target = await this.connect(tag);
      const { history, unfinished } = await readHistoryState(target);
      const completed = (await history.completedMigrations(target.connection)).map(({ migration }) => migration);
      const expected = await history.model(target);
      const found = new Map(await target.connection.introspect());
      for (const table of this.ignore) if (!expected.has(table)) found.delete(table);
      const unmanaged = [...found.keys()].filter((name) => !expected.has(name));
      const managed = new Map([...found].filter(([name]) => expected.has(name)));
      // A foreign key to an ignored table is ignored, too.
      const compared = this.strict
        ? withoutUnknownReferences(found, new Map([...found, ...expected]))
        : withoutUnknownReferences(managed, expected);
      const tables = await compare(target, expected, compared, rawMentions(completed, target.dialect.name));
      const objects = await compareObjects(target, completed, (key) => this.strict && !this.ignore.includes(key));
      unmanaged.push(...objects.unmanaged.filter((key) => !this.ignore.includes(key)));
      const different = [...tables.different, ...objects.different];
      const remedies = [...tables.remedies, ...(objects.different.length > 0 ? [ADOPT] : [])];
      const outOfOrder = await historyOrderDifferences(target, history);
      await target.connection.close();
      this.print(
        [
          `${headline(unfinished, different, outOfOrder)}  ${await this.label(tag)}`,
          ...unfinished.map((entry) => `  ${entry.tag}  ${describeProblem(entry)}`),
          ...different.map((line) => `  ${line}`),
          ...outOfOrder.map((line) => `  applied out of order: ${line}`),
        ].join('\n'),
      );
      if (!this.strict && unmanaged.length > 0) this.note(`  not managed by svc: ${unmanaged.join(', ')}`);
      if (this.strict) {
        const left = objects.usingOthers.filter((object) => !this.ignore.includes(objectKey(object)));
        for (const object of left) this.note(`  ${describeUsingOthers(object)}`);
      }
      // Until a migration is finished, differences are its work: neither to be reverted nor to be adopted.
      if (unfinished.length === 0) adopt.push(...remedies);
      return { unfinished, differences: different, outOfOrder, unmanaged };
    });
    return { data: { databases }, ...this.#result(databases, adopt) };
  }

  /** The worst finding: a failed migration, a difference, the order of application, an unfinished migration. */
  #result(databases: readonly Compared[], adopt: readonly string[]): Omit<CommandResult, 'data'> {
    const stopped =
      databases.find(({ unfinished }) => unfinished.some(({ state }) => state === 'failed')) ??
      databases.find(({ unfinished }) => unfinished.length > 0);
    const result = stopped && statusResult(stopped.unfinished, []);
    const differ = databases.some((one) => one.unfinished.length === 0 && one.differences.length > 0);
    const outOfOrder = databases.flatMap((one) => one.outOfOrder);
    if (result?.exit !== 6) {
      if (differ) return { code: 'drift', exit: 5, nextActions: [...new Set(adopt)] };
      if (outOfOrder.length > 0) return { code: 'order_conflict', exit: 5, nextActions: nextStepsToAlign(outOfOrder) };
    }
    if (!stopped) return {};
    if (databases.length > 1) this.failedDatabase = stopped.database;
    return { ...result, nextActions: nextActions(stopped.unfinished, []) };
  }
}

interface Compared {
  readonly database: string;
  readonly unfinished: readonly StatusEntry[];
  readonly differences: readonly string[];
  readonly outOfOrder: readonly string[];
}

function headline(
  unfinished: readonly StatusEntry[],
  different: readonly string[],
  outOfOrder: readonly string[],
): string {
  if (unfinished.length > 0) return unfinished.every(({ state }) => state === 'running') ? 'PENDING' : 'FAILED';
  if (different.length > 0) return 'DRIFT';
  return outOfOrder.length > 0 ? 'ORDER' : 'OK';
}

/** The differences in words, and what to do about them. An object in a form that svc cannot create is not missing. */
async function compare(
  target: Target,
  expected: SchemaModel,
  found: SchemaModel,
  findRaw: FindRawMention,
): Promise<{ readonly different: readonly string[]; readonly remedies: readonly string[] }> {
  const { connection } = target;
  const different = await drift(connection, expected, found);
  if (different.length === 0) return { different, remedies: [] };
  const unsupported = await connection.unsupportedObjects();
  const changed = unsupported.filter(({ collection = '', name = '' }) => {
    const [known, current] = [expected.get(collection), found.get(collection)];
    const isMissing = (kind: 'indexes' | 'constraints') => known?.[kind].has(name) && !current?.[kind].has(name);
    return current && (isMissing('indexes') || isMissing('constraints'));
  });
  const withChanged = withUnreadObjects(found, await connection.normalize(expected), changed);
  return {
    different: [...(await drift(connection, expected, withChanged)), ...changed.map(describeUnsupported)],
    remedies: await driftRemedies(target, { expected, found: withChanged, unsupported, changed, findRaw }),
  };
}
