import * as assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import type { Adapter } from '../core/database/adapter.ts';
import { migration } from '../core/migration/builder.ts';
import { MigrationEngine } from '../core/migration/engine.ts';
import type { Migration } from '../core/migration/migration.ts';
import { historyModel, migrate } from '../core/migration/run.ts';
import { status } from '../core/migration/status.ts';
import { definedInCode } from './kit/defined.ts';
import { engines, type TestEngine } from './kit/engines.ts';
import { test } from './kit/test.ts';

// Migrators in processes of their own, killed with SIGKILL at every boundary and at random moments: whatever the
// moment, the next run ends in a correct state without a person, and everything has happened exactly once.

const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const count = (what: string) => `INSERT INTO effects VALUES ('${what}')`;

const migrations: readonly Migration[] = [
  migration('20260101_000000_effects')
    .createCollection('effects', [{ name: 'what', type: 'text', primaryKey: true }])
    .build(),
  migration('20260102_000000_atomic')
    .createCollection('users', [key, { name: 'email', type: 'string', unique: true }])
    .addField('users', { name: 'age', type: 'integer' })
    .raw('postgresql', count('atomic'), { down: `DELETE FROM effects WHERE what = 'atomic'` })
    .build(),
  migration('20260103_000000_steps')
    .raw('postgresql', count('before the index'), { down: `DELETE FROM effects WHERE what = 'before the index'` })
    .createIndex('users', 'users_age', [{ name: 'age' }], { sqlOptions: { concurrently: true } })
    .raw('postgresql', count('after the index'), { down: `DELETE FROM effects WHERE what = 'after the index'` })
    .createIndex('users', 'users_age_email', [{ name: 'age' }, { name: 'email' }], {
      sqlOptions: { concurrently: true },
    })
    .build(),
  migration('20260104_000000_unlocked')
    .raw('postgresql', `INSERT INTO effects SELECT 'raw' WHERE NOT EXISTS (SELECT FROM effects WHERE what = 'raw')`, {
      transaction: false,
      check: `SELECT 1 FROM effects WHERE what = 'raw'`,
      down: `DELETE FROM effects WHERE what = 'raw'`,
    })
    .build(),
  migration('20260105_000000_last')
    .createCollection('orders', [key, { name: 'total', type: 'decimal', precision: 10, scale: 2 }])
    .build(),
];
const defined = migrations.map(definedInCode);
const EFFECTS = ['after the index', 'atomic', 'before the index', 'raw'];

const folder = mkdtempSync(join(tmpdir(), 'svc-crash-'));
const file = join(folder, 'migrations.json');
writeFileSync(file, JSON.stringify(migrations));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** Many processes start one after another. */
const SLOW = { timeoutMs: 300_000 };
const script = fileURLToPath(new URL('./kit/migrator.ts', import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

function migrator(url: string, kill = ''): { child: ChildProcess; ready: Promise<void>; ended: Promise<Ended> } {
  const child = spawn(process.execPath, ['--import', 'tsx', script, url, file, kill], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stderr.on('data', (chunk) => {
    err += chunk;
  });
  const ready = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk) => {
      out += chunk;
      if (out.includes('ready')) resolve();
    });
    child.on('exit', () => resolve());
  });
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, out, err }));
  return { child, ready, ended };
}

async function isWhole(engine: TestEngine, adapter: Adapter): Promise<void> {
  const report = await status(adapter, defined);
  assert.equal(report.state, 'OK', JSON.stringify(report.entries));
  const effects = await adapter.connection.query('SELECT what FROM effects ORDER BY what');
  assert.deepEqual(
    effects.map(({ what }) => what),
    EFFECTS,
  );
  const model = await historyModel(adapter);
  const found = await adapter.connection.introspect();
  assert.ok(
    isDeepStrictEqual(await adapter.connection.seen(model), found),
    `${engine.name}: the catalog is not what the history says`,
  );
  const tags = (await new MigrationEngine(adapter).getHistory()).map(({ tag }) => tag);
  assert.deepEqual(
    tags,
    migrations.map(({ tag }) => tag),
  );
}

for (const engine of engines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: crashes`, engine.missing);
    continue;
  }
  // What was answered before the next call is made changes nothing in between: dying before each covers dying after it.
  test(
    `${engine.name}: killed before every call to the database, the next run ends whole`,
    async () => {
      let calls = 0;
      await engine.withUrl(async (url, connect) => {
        const { out, code, err } = await migrator(url).ended;
        assert.equal(code, 0, err);
        calls = Number(/calls (\d+)/.exec(out)?.[1]);
        assert.ok(calls >= 10, `only ${calls} calls`);
        await isWhole(engine, await connect());
      });
      for (let call = 1; call <= calls; call++) {
        await engine.withUrl(async (url, connect) => {
          const killed = await migrator(url, `before:${call}`).ended;
          assert.equal(killed.signal, 'SIGKILL', `call ${call}: ${killed.err}`);
          const adapter = await connect();
          await migrate(adapter, defined);
          await isWhole(engine, adapter);
        });
      }
    },
    SLOW,
  );

  test(
    `${engine.name}: killed at random moments, ten times over`,
    async () => {
      for (let round = 0; round < 10; round++) {
        await engine.withUrl(async (url, connect) => {
          const { child, ready, ended } = migrator(url);
          await ready;
          setTimeout(() => child.kill('SIGKILL'), Math.random() * 60);
          await ended;
          const adapter = await connect();
          await migrate(adapter, defined);
          await isWhole(engine, adapter);
        });
      }
    },
    SLOW,
  );

  test(
    `${engine.name}: two, four and sixteen migrators at once apply everything once and all end well`,
    async () => {
      for (const many of [2, 4, 16]) {
        await engine.withUrl(async (url, connect) => {
          const ended = await Promise.all(Array.from({ length: many }, () => migrator(url).ended));
          for (const { code, err } of ended) assert.equal(code, 0, err);
          const applied = ended.map(({ out }) => Number(/applied (\d+)/.exec(out)?.[1]));
          assert.equal(
            applied.reduce((sum, one) => sum + one, 0),
            migrations.length,
          );
          await isWhole(engine, await connect());
        });
      }
    },
    SLOW,
  );
}
