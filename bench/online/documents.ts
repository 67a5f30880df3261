import { setTimeout as wait } from 'node:timers/promises';
import { migrate } from '../../core/migration/migrate.ts';
import type { Migration } from '../../core/migration/migration.ts';
import type { Operation } from '../../core/schema/operation.ts';
import { definedInCode } from '../../test/kit/migrations.ts';
import { sixEngines } from '../../test/kit/six-engines.ts';
import { connectTarget } from '../../test/kit/target.ts';
import { table } from '../table.ts';
import { VISIT } from './changes.ts';
import { documentClient } from './clients.ts';
import { cell, type Load, longest, measure, type Round } from './round.ts';

const ENGINES = ['mongodb', 'dynamodb', 'cassandra'] as const;
type DocumentEngine = (typeof ENGINES)[number];
export const isDocumentEngine = (name: string): name is DocumentEngine => ENGINES.some((one) => one === name);

const PER_SECOND = 50;
const FILLED_AT_ONCE = 1_000;
/** The only DynamoDB that this runs on. */
const LOCAL = 'The requests that failed were answered with 500 by DynamoDB Local, while it built or dropped an index.';

/** Changes of the one table `visits`, one after the other. */
interface DocumentChange {
  readonly name: string;
  readonly operation: Operation;
  /** What the application writes since before the change, where it can: Cassandra knows no such column yet, and requires none. */
  readonly added?: Load['added'];
  /** Other engines do not have it. */
  readonly only?: readonly DocumentEngine[];
}

const MONGODB = ['mongodb'] as const;
const OTHERS = ['mongodb', 'dynamodb'] as const;
const CASSANDRA = ['cassandra'] as const;

const visits = { collection: 'visits' } as const;

const TABLES: readonly Operation[] = [
  {
    type: 'createCollection',
    name: 'visits',
    fields: [{ name: 'id', type: 'bigint', primaryKey: true }, ...VISIT],
  },
  { type: 'createIndex', ...visits, index: 'visits_old', columns: [{ name: 'old' }] },
];

const check = (name: string, least: number): Operation => ({
  type: 'addConstraint',
  ...visits,
  constraint: { name, type: 'check', columns: ['n'], expression: JSON.stringify({ $gte: ['$n', least] }) },
});

const CHANGES: readonly DocumentChange[] = [
  {
    name: 'an index',
    operation: { type: 'createIndex', ...visits, index: 'visits_n', columns: [{ name: 'n' }] },
  },
  { name: 'an index less', operation: { type: 'dropIndex', ...visits, index: 'visits_old' } },
  {
    name: 'a unique constraint',
    only: MONGODB,
    operation: {
      type: 'addConstraint',
      ...visits,
      constraint: { name: 'visits_code', type: 'unique', columns: ['code'] },
    },
  },
  { name: 'a check', only: MONGODB, operation: check('visits_positive', -5) },
  {
    name: 'a check less',
    only: MONGODB,
    operation: { type: 'dropConstraint', ...visits, constraint: 'visits_positive' },
  },
  {
    name: 'a required field',
    operation: { type: 'modifyField', ...visits, field: 'n', changes: { required: true } },
  },
  {
    name: 'a field with a constant default',
    operation: {
      type: 'addField',
      ...visits,
      field: { name: 'flag', type: 'boolean', required: true, default: false },
    },
    added: { flag: false },
  },
  {
    name: 'a required uuid for each row',
    operation: {
      type: 'addField',
      ...visits,
      field: { name: 'token', type: 'uuid', autoGenerate: true, required: true },
    },
    added: { token: 'uuid' },
  },
  {
    name: 'a field with a list of values',
    operation: { type: 'addField', ...visits, field: { name: 'kind', type: 'enum', enumValues: ['a', 'b'] } },
  },
  {
    name: 'a value more in a list',
    operation: { type: 'modifyField', ...visits, field: 'status', changes: { enumValues: ['open', 'paid', 'sent'] } },
  },
  {
    name: 'a longer text',
    operation: { type: 'modifyField', ...visits, field: 'code', changes: { length: 60 } },
  },
  {
    name: 'an integer becomes a bigint',
    only: OTHERS,
    operation: { type: 'modifyField', ...visits, field: 'old', changes: { type: 'bigint' } },
  },
  {
    name: 'another name for a field',
    only: OTHERS,
    operation: { type: 'renameField', ...visits, from: 'old', to: 'older' },
  },
  {
    name: 'another name for a field, copied',
    only: CASSANDRA,
    operation: { type: 'renameField', ...visits, from: 'old', to: 'older', strategy: 'copy' },
  },
  {
    name: 'an integer becomes a text',
    only: OTHERS,
    operation: { type: 'modifyField', ...visits, field: 'older', changes: { type: 'string' } },
  },
  {
    name: 'an integer becomes a text, copied',
    only: CASSANDRA,
    operation: {
      type: 'renameField',
      ...visits,
      from: 'older',
      to: 'oldest',
      strategy: 'copy',
      changes: { type: 'text' },
    },
  },
  { name: 'a field less', operation: { type: 'dropField', ...visits, field: 'note' } },
];

const migrationOf = (up: readonly Operation[], count: number): Migration => ({
  tag: `20260101_${String(count).padStart(6, '0')}_change`,
  name: 'change',
  up,
  down: [],
  irreversible: 'It is not needed.',
});

/** The lines of the report of one engine. */
export async function measureDocuments(name: DocumentEngine, rows: number): Promise<readonly string[]> {
  const engine = sixEngines.find((one) => one.name === name);
  if (!engine || engine.missing !== undefined) throw new Error(engine?.missing ?? name);
  const database = await engine.createDatabase();
  try {
    const applied: Migration[] = [];
    let version: string = name;
    const change = async (up: readonly Operation[]): Promise<void> => {
      const target = await connectTarget(engine.dialect, database.url);
      version = target.connection.server ?? name;
      const next = migrationOf(up, applied.length + 1);
      try {
        await migrate(target, [...applied, next].map(definedInCode), { allowDestructive: true });
        applied.push(next);
      } finally {
        await target.connection.close();
      }
    };
    await change(TABLES);
    console.error(`${name}: writing ${rows.toLocaleString('en')} rows`);
    await fill(database.url, rows);
    let added: NonNullable<Load['added']> = {};
    const rounds: [string, Round][] = [];
    const round = async (title: string, work: () => Promise<void>) => {
      const result = await measure({ url: database.url, rows, perSecond: PER_SECOND, added }, work);
      rounds.push([title, result]);
      console.error([name, title, cell(result), ...new Set(result.failures)].join(' | '));
    };
    await round('nothing', () => wait(2_000));
    for (const one of CHANGES) {
      if (one.only && !one.only.includes(name)) continue;
      if (name !== 'cassandra') added = { ...added, ...one.added };
      await round(one.name, () => change([one.operation]));
    }
    const worst = longest(rounds.slice(1).flatMap(([, { writes }]) => writes));
    return [
      `## ${version}, ${rows.toLocaleString('en')} rows, ${PER_SECOND} writes and ${PER_SECOND} reads a second`,
      '',
      table(
        ['', 'svc'],
        rounds.map(([title, result]) => [title, cell(result)]),
      ),
      '',
      `svc: the longest write took ${worst.toFixed(0)} ms.${name === 'dynamodb' ? ` ${LOCAL}` : ''}`,
    ];
  } finally {
    await database.drop();
  }
}

async function fill(url: string, rows: number): Promise<void> {
  const client = documentClient(url, 4);
  try {
    for (let from = 1; from <= rows; from += FILLED_AT_ONCE) {
      const count = Math.min(FILLED_AT_ONCE, rows - from + 1);
      await client.fill(Array.from({ length: count }, (_, index) => from + index));
    }
  } finally {
    await client.close();
  }
}
