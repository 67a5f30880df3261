import * as assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { unattendedText } from '../core/approval/public-view.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { Operation } from '../core/schema/operation.ts';
import { sqlEngines, type TestEngine } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { assertExit, LONG, project } from './kit/project.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';

/* What is over a renamed field in both halves, and the second half after other changes. */

const id = { type: 'Integer', primaryKey: true, autoGenerate: true } as const;

for (const engine of sqlEngines) {
  if (engine.missing !== undefined) test.skip(`names over two fields on ${engine.name}`, engine.missing);
  else {
    testCheckedFirst(engine);
    if (engine.name !== 'pglite') testForeignKey(engine);
  }
}

const folder = 'svc/database/migrations/main/';

test('what has a derived name is over the new field from the first half on', async () => {
  const { svc, schema, files, read } = project({ main: 'postgresql://127.0.0.1/none' });
  const tables = (name: string) => [
    {
      db: 'main',
      tables: { users: { id, [name]: 'Integer', boss: 'Integer' } },
      indexes: { users: [{ columns: [name, 'boss'] }, { name: 'kept', columns: [name] }] },
      constraints: {
        users: [
          { type: 'unique', columns: [name] },
          { type: 'check', columns: [name], expression: `${name} > 0` },
        ],
      },
    },
  ];
  schema(tables('age'));
  assertExit(await svc('db', 'schema', 'generate'));
  schema(tables('years'));
  assertExit(await svc('db', 'schema', 'generate', '--rename', 'users.age:years', '--expand'));
  const [, first = '', second = ''] = files();
  const operations = (file: string) =>
    (JSON.parse(read(folder + file)) as Migration).up.flatMap((operation) =>
      operation.type === 'createIndex' || operation.type === 'dropIndex'
        ? [`${operation.type} ${operation.index}`]
        : operation.type === 'addConstraint'
          ? [`addConstraint ${operation.constraint.name}`]
          : operation.type === 'dropConstraint'
            ? [`dropConstraint ${operation.constraint}`]
            : [],
    );
  assert.deepEqual(operations(first), [
    'createIndex users_years_boss_idx',
    'addConstraint users_years_key',
    'addConstraint users_years_check',
  ]);
  assert.deepEqual(operations(second), [
    'dropConstraint users_age_key',
    'dropConstraint users_age_check',
    'dropIndex kept',
    'dropIndex users_age_boss_idx',
    'createIndex kept',
  ]);
  assert.match(assertExit(await svc('db', 'schema', 'generate')).stdout, /Nothing to generate/);
});

test('the second half that was deleted is generated again, after later migrations', async () => {
  const { root, svc, schema, files, read } = project({ main: 'postgresql://127.0.0.1/none' });
  const users = (name: string, more: object = {}) => ({ users: { id, [name]: 'String', ...more } });
  schema(users('name'));
  assertExit(await svc('db', 'schema', 'generate'));
  schema(users('full_name'));
  assertExit(await svc('db', 'schema', 'generate', '--rename', 'users.name:full_name', '--expand'));
  const [, first = '', second = ''] = files();
  schema(users('full_name', { age: 'Integer' }));
  assertExit(await svc('db', 'schema', 'generate'));
  const deleted: Migration = JSON.parse(read(folder + second));
  rmSync(join(root, folder, second));
  assertExit(await svc('db', 'schema', 'generate'));
  const again: Migration = JSON.parse(read(folder + files().at(-1)));
  assert.equal(`${again.contracts}.json`, first);
  assert.deepEqual([again.up, again.down], [deleted.up, deleted.down]);
  assert.match(assertExit(await svc('db', 'schema', 'generate')).stdout, /Nothing to generate/);
});

test('who approves a second half reads which command applies it', () => {
  const request = { agentTag: 'svc', tool: 'svc_db_migrate' };
  const textOf = (action: string, more = {}) => unattendedText({ ...request, parameters: { action, ...more } }, 'now');
  assert.match(textOf('contract'), /run svc db migrate contract again/);
  assert.match(textOf('migrate'), /run svc db migrate again/);
  assert.match(textOf('migrate', { keepHours: 12 }), /run svc db migrate --keep 12h again/);
  assert.match(textOf('resolve --retry'), /run svc db migrate resolve <tag> --retry again/);
  assert.match(textOf('dropCollection'), /let the program make the same change again: it applies the plan/);
});

for (const engine of sqlEngines) {
  if (engine.missing !== undefined || engine.name === 'pglite') continue;
  test(
    `${engine.name}: a view that reads the new field is put back before the field is dropped`,
    () =>
      engine.withUrl(async (url) => {
        const { svc, schema, write } = project({ main: url });
        const declare = (name: string) => {
          schema({ users: { id, [name]: 'String' } });
          write('svc/database/objects/main/view/names.sql', `CREATE VIEW names AS SELECT id, ${name} FROM users`);
        };
        declare('name');
        assertExit(await svc('db', 'schema', 'generate'));
        assertExit(await svc('db', 'migrate'));
        declare('full_name');
        assertExit(await svc('db', 'schema', 'generate', '--rename', 'users.name:full_name', '--expand'));
        assertExit(await svc('db', 'migrate'));
        assertExit(await svc('db', 'migrate', 'contract'));
        for (const _ of ['the second half', 'the first half']) {
          assertExit(await svc('db', 'migrate', 'rollback', '--yes'));
          assertExit(await svc('db', 'schema', 'check'));
        }
      }),
    LONG,
  );
}

/** On MySQL and MariaDB, what a foreign key does to a row runs no triggers: each of the two fields needs one. */
function testForeignKey(engine: TestEngine): void {
  test(
    `${engine.name}: a foreign key that changes rows changes both fields`,
    () =>
      engine.withUrl(async (url) => {
        const { svc, schema } = project({ main: url });
        const tables = (team: string) => ({
          teams: { id: { type: 'Integer', primaryKey: true } },
          users: {
            id,
            [team]: {
              type: 'Integer',
              references: { table: 'teams', column: 'id', onDelete: 'SET NULL', onUpdate: 'CASCADE' },
            },
          },
        });
        schema(tables('team'));
        assertExit(await svc('db', 'schema', 'generate'));
        assertExit(await svc('db', 'migrate'));
        schema(tables('team_id'));
        assertExit(await svc('db', 'schema', 'generate', '--rename', 'users.team:team_id', '--expand'));
        assertExit(await svc('db', 'migrate'));
        const { connection } = await connectTarget(engine.dialect, url);
        try {
          for (const text of [
            'INSERT INTO teams (id) VALUES (1), (2)',
            'INSERT INTO users (team) VALUES (1)',
            'INSERT INTO users (team_id) VALUES (2)',
            'DELETE FROM teams WHERE id = 1',
            'UPDATE teams SET id = 3 WHERE id = 2',
          ])
            await connection.query(text);
          const rows = await connection.query('SELECT team, team_id FROM users ORDER BY team_id');
          assert.deepEqual(
            rows.map((row) => [row.team, row.team_id]).sort(),
            [
              [null, null],
              [3, 3],
            ].sort(),
          );
        } finally {
          await connection.close();
        }
        assertExit(await svc('db', 'migrate', 'contract'));
        assertExit(await svc('db', 'schema', 'check'));
      }),
    LONG,
  );
}

function testCheckedFirst(engine: TestEngine): void {
  for (const [rule, values] of [
    ['required', '(1, NULL)'],
    ['unique', "(1, 'a'), (2, 'a')"],
  ] as const)
    test(`${engine.name}: rows that do not allow the second name (${rule}) are found before it is added`, () =>
      engine.withDatabase(async (target) => {
        const field = { name: 'name', type: 'string', length: 20 } as const;
        const collection = 'users';
        const migrationOf = (tag: string, up: Operation[]): Migration => ({
          tag,
          name: tag,
          up,
          down: [],
          irreversible: 'It is not needed.',
          online: true,
        });
        const setup = migrationOf('20260101_000000_setup', [
          {
            type: 'createCollection',
            name: collection,
            fields: [{ name: 'id', type: 'integer', primaryKey: true }, field],
          },
        ]);
        await migrate(target, [definedInCode(setup)]);
        await target.connection.query(`INSERT INTO users (id, name) VALUES ${values}`);
        const expand = migrationOf('20260102_000000_expand', [
          { type: 'addField', collection, field: { ...field, name: 'full_name', [rule]: true }, mirrors: 'name' },
        ]);
        await assert.rejects(migrate(target, [setup, expand].map(definedInCode)), { code: 'data_violates' });
        await assert.rejects(async () => target.connection.query('SELECT full_name FROM users'));
        await target.connection.query('DELETE FROM users');
        await migrate(target, [setup, expand].map(definedInCode));
      }));
}

for (const engine of sqlEngines) {
  if (engine.missing !== undefined) continue;
  test(`${engine.name}: a migration that needs the second half says how to apply it first`, () =>
    engine.withDatabase(async (target) => {
      const collection = 'users';
      const name = { name: 'name', type: 'string', length: 20 } as const;
      const migrationOf = (tag: string, up: Operation[], contracts?: string): Migration => ({
        tag,
        name: tag,
        up,
        down: [],
        irreversible: 'It is not needed.',
        ...(contracts !== undefined && { contracts }),
      });
      const first = '20260101_000000_expand';
      const second = '20260102_000000_contract';
      const all = [
        migrationOf(first, [
          {
            type: 'createCollection',
            name: collection,
            fields: [{ name: 'id', type: 'integer', primaryKey: true }, name],
          },
          { type: 'addField', collection, field: { ...name, name: 'full_name' }, mirrors: 'name' },
        ]),
        migrationOf(second, [{ type: 'dropField', collection, field: 'name', mirrors: 'full_name' }], first),
        migrationOf('20260103_000000_again', [{ type: 'addField', collection, field: name }]),
      ].map(definedInCode);
      await assert.rejects(migrate(target, all), {
        code: 'field_exists',
        next: [
          `svc db migrate --to ${first}, then svc db migrate contract, then svc db migrate`,
          `Or, if every environment has applied "${second}", remove "contracts" from it: svc db migrate then applies it before this one.`,
        ],
      });
      await migrate(target, all, { to: first });
      await assert.rejects(
        migrate(target, all),
        (error: { next: string[] }) => error.next[0] === 'svc db migrate contract, then svc db migrate',
      );
      await migrate(target, all, { contract: true });
      await migrate(target, all);
      await target.connection.query("INSERT INTO users (id, full_name, name) VALUES (1, 'a', 'b')");
    }));
}
