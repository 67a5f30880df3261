import * as assert from 'node:assert/strict';
import type { Dialect } from '../core/dialect.ts';
import { Kernel } from '../core/kernel.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { RunEvent } from '../core/migration/preview.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import { status } from '../core/migration/status.ts';
import type { Target } from '../core/migration/target.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { freshKeyspace, unavailable as noCassandra } from './kit/cassandra.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { definedInCode } from './kit/migrations.ts';
import { freshMongo, missing as noMongo } from './kit/mongodb.ts';
import { unavailable as noDynamodb, ownDynamodb } from './kit/own-dynamodb.ts';
import { connectTarget, tablesOf } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import type { TestDatabase } from './suites/test-database.ts';

/*
 * Where every step commits by itself, a run sends many steps to the engine at once. An interrupted run still ends after
 * the step that had started, in whichever migration that is.
 */

const ID = { name: 'id', type: 'integer', primaryKey: true } as const;
const table = (tag: string, ...names: string[]) =>
  definedInCode(names.reduce((built, name) => built.createCollection(name, [ID]), migration(tag)).build());
const defined = [
  table('20260101_000000_one', 'one'),
  table('20260102_000000_two', 'two'),
  table('20260103_000000_three', 'three', 'four', 'five'),
  table('20260104_000000_six', 'six'),
];

const THREE = '20260103_000000_three';

/** Interrupts a run at an event. */
async function interrupted(adapter: Target, at: (event: RunEvent) => boolean): Promise<string> {
  const stop = new AbortController();
  const onEvent = (event: RunEvent) => at(event) && stop.abort();
  return (await expectError(migrate(adapter, defined, { signal: stop.signal, onEvent }), 'interrupted')).state ?? '';
}

interface Engine {
  readonly dialect: Dialect;
  readonly missing: string | undefined;
  fresh(): Promise<TestDatabase>;
}

const engines: readonly Engine[] = [
  { dialect: mongodb, missing: noMongo, fresh: freshMongo },
  {
    dialect: dynamodb,
    missing: noDynamodb(),
    async fresh() {
      const server = await ownDynamodb();
      const { url } = freshPrefix(server.port);
      return { url, drop: () => server.kill() };
    },
  },
  { dialect: cassandra, missing: noCassandra, fresh: () => freshKeyspace() },
];

for (const { dialect, missing, fresh } of engines) {
  const name = `${dialect.name}: an interrupted run ends after the step that had started, and the next run finishes`;
  if (missing !== undefined) {
    test.skip(name, missing);
    continue;
  }
  test(
    name,
    async () => {
      const { url, drop } = await fresh();
      const adapter = await connectTarget(dialect, url);
      try {
        const kernel = new Kernel();
        const tapped = await connectTarget(dialect, url, { kernel });
        const stop = new AbortController();
        kernel.hooks['migration:up'].tap('stop', () => stop.abort());
        const announced = await expectError(migrate(tapped, defined, { signal: stop.signal }), 'interrupted');
        await tapped.connection.close();
        assert.match(announced.state ?? '', /^1 of 4 migrations are finished/);
        assert.deepEqual(await tablesOf(adapter), ['one']);
        const first = await interrupted(adapter, (event) => event.type === 'started' && event.tag === defined[1]?.tag);
        assert.match(first, /^1 of 3 migrations are finished/);
        assert.deepEqual(await tablesOf(adapter), ['one', 'two']);
        const within = await interrupted(adapter, (event) => event.type === 'started');
        assert.match(within, /^1 of 3 steps of "20260103_000000_three" are committed and journaled/);
        assert.deepEqual(await tablesOf(adapter), ['one', 'three', 'two']);
        const events: string[] = [];
        await migrate(adapter, defined, {
          onEvent: (event) => void ('tag' in event && events.push(`${event.type} ${event.tag}`)),
        });
        assert.deepEqual(events, [
          'resumed 20260103_000000_three',
          'finished 20260103_000000_three',
          'started 20260104_000000_six',
          'finished 20260104_000000_six',
        ]);
        assert.deepEqual(await tablesOf(adapter), ['five', 'four', 'one', 'six', 'three', 'two']);
        assert.equal((await status(adapter, defined)).state, 'OK');

        const back = new AbortController();
        const onEvent = (event: RunEvent) => event.type === 'started' && event.tag === THREE && back.abort();
        const half = await expectError(rollback(adapter, { count: 3, signal: back.signal, onEvent }), 'interrupted');
        assert.match(half.state ?? '', /^1 of 3 steps of "20260103_000000_three" are committed and journaled/);
        assert.match(half.next[0] ?? '', /^svc db migrate resolve 20260103_000000_three --retry {4}/);
        assert.equal((await resolveMigration(adapter, THREE, 'retry')).status, 'rolled_back');
        assert.deepEqual(await tablesOf(adapter), ['one', 'two']);
      } finally {
        await adapter.connection.close();
        await drop();
      }
    },
    { timeoutMs: 120_000 },
  );
}
