import type { TableDescription } from '@aws-sdk/client-dynamodb';
import type { Unreadable } from '../../../core/dialect.ts';
import type { SchemaModel } from '../../../core/schema/model.ts';
import type { Api } from './api.ts';
import { isOurs, logicalName } from './names.ts';
import { normal } from './normal.ts';
import { entriesOf } from './registry.ts';
import { describe } from './settled.ts';
import { shapeFrom } from './shape.ts';
import type { State } from './state.ts';
import { timeToLive } from './time-to-live.ts';

const AT_ONCE = 16;

/** The tables of this database by our names, without those of svc; one that is being deleted is still among them. */
export async function tableNames(api: Api): Promise<string[]> {
  const found: string[] = [];
  let start: string | undefined;
  do {
    const page = await api.send('ListTables', { ...(start !== undefined && { ExclusiveStartTableName: start }) });
    for (const name of page.TableNames ?? []) {
      const table = logicalName(api.prefix, name);
      if (table !== undefined && !isOurs(table)) found.push(table);
    }
    start = page.LastEvaluatedTableName;
  } while (start !== undefined);
  return found;
}

/**
 * What DynamoDB knows of the tables, with the fields that our registry says. A table that is being created counts once
 * it is there, one that is being deleted no more.
 */
export async function introspect(api: Api, state: State, tables?: readonly string[]): Promise<SchemaModel> {
  const names = (tables ?? (await tableNames(api))).filter((name) => !isOurs(name));
  const [found, entries] = await Promise.all([describeAll(api, names), entriesOf(api, state, names)]);
  const model = new Map<string, ReturnType<typeof normal>>();
  for (const [name, { table, ttl }] of found) {
    const entry = entries.get(name);
    if (entry?.creating) continue;
    const known = entry?.collection ?? { name, fields: new Map(), indexes: new Map(), options: {} };
    model.set(name, normal(shapeFrom(table, ttl), known));
  }
  return model;
}

type Found = Map<string, { table: TableDescription; ttl: Awaited<ReturnType<typeof timeToLive>> }>;

async function describeAll(api: Api, names: readonly string[]): Promise<Found> {
  const found: Found = new Map();
  const left = [...names];
  const worker = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      if (!isTableName(name)) continue;
      const whole = api.table(name);
      const [table, ttl] = await Promise.all([describe(api, whole), timeToLive(api, whole)]);
      if (table && table.TableStatus !== 'DELETING') found.set(name, { table, ttl });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return new Map(names.flatMap((name) => (found.has(name) ? [[name, found.get(name) as never]] : [])));
}

/** DynamoDB refuses to look for a name that no table can have. */
const isTableName = (name: string): boolean => /^[a-zA-Z0-9_.-]{1,190}$/.test(name);

/** What a table has that neither DynamoOptions nor our registry can say. */
export async function unreadable(api: Api, state: State): Promise<Unreadable[]> {
  const names = await tableNames(api);
  const [found, entries] = await Promise.all([describeAll(api, names), entriesOf(api, state, names)]);
  return [...found].flatMap(([collection, { table }]) => {
    const what: string[] = [];
    if (!entries.has(collection))
      what.push('has attributes that are no keys, which DynamoDB does not know: declare them');
    for (const index of [...(table.GlobalSecondaryIndexes ?? []), ...(table.LocalSecondaryIndexes ?? [])]) {
      if (index.Projection?.ProjectionType === 'INCLUDE') {
        what.push(`has an index "${index.IndexName}" that projects some attributes by name (INCLUDE)`);
      }
    }
    if (table.SSEDescription) what.push('is encrypted with a key of its own');
    if (table.DeletionProtectionEnabled) what.push('is protected against deletion');
    if (table.TableClassSummary?.TableClass === 'STANDARD_INFREQUENT_ACCESS') what.push('is of the class STANDARD_IA');
    if (table.Replicas?.length)
      what.push(`has replicas in ${table.Replicas.map(({ RegionName }) => RegionName).join(', ')}`);
    if (table.OnDemandThroughput) what.push('has a limit of its on-demand throughput');
    return what.map((one) => ({ collection, what: one }));
  });
}
