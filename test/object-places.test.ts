import * as assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { committingEngines } from './kit/engines.ts';
import { adopted, type Fixture, OBJECTS, on } from './kit/object-files.ts';
import { assertExit } from './kit/project.ts';

/** Triggers of one event run in the order in which they are created: what is created again keeps its place. */

const TABLES = [
  'create table users (id int primary key, name varchar(40), n int)',
  'create table log (id int auto_increment primary key, text varchar(200))',
];
const trigger = (name: string, body: string, place = '') =>
  `create trigger ${name} before insert on users for each row ${place} ${body}`;
const THREE = [
  ...TABLES,
  trigger('b', "begin set new.name = concat(new.name, 'b'); end"),
  trigger('c', "set new.name = concat(new.name, 'c', coalesce(new.n, 0))"),
  trigger('a', "set new.name = concat(new.name, 'a')", 'precedes b'),
  trigger('d', "set new.name = concat(new.name, 'd')", 'follows b'),
];

const file = (name: string) => `${OBJECTS}/trigger/users.${name}.sql`;

const remove = ({ root }: Fixture, path: string) => rmSync(join(root, path));

const orderOf = async ({ query }: Fixture) =>
  (
    await query(
      "select trigger_name as name from information_schema.triggers where trigger_schema = database() and event_object_table = 'users' order by action_order",
    )
  )
    .map(({ name }) => name)
    .join('');

const insideOut = async (fixture: Fixture, order: string) => {
  assert.equal(await orderOf(fixture), order);
  assert.match(assertExit(await fixture.svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
};

on(
  'an edited trigger keeps its place among those of its event, and so does one that is moved aside',
  async (fixture) => {
    const { svc, edit } = fixture;
    await adopted(fixture);
    await insideOut(fixture, 'abdc');
    const changes: readonly (readonly [change: () => void, ...more: string[]])[] = [
      [() => edit(file('b'), (text) => text.replace("'b'", "'B'"))],
      [() => edit(file('a'), (text) => text.replace("'a'", "'A'"))],
      [
        () => {
          edit(file('c'), (text) => text.replace(/new\.n\b/g, 'new.m'));
          edit('svc/database/schema.json', (text) => text.replace('"n":', '"m":'));
        },
        '--rename',
        'users.n:m',
      ],
    ];
    for (const [change, ...more] of changes) {
      change();
      assertExit(await svc('db', 'schema', 'generate', ...more));
      assertExit(await svc('db', 'migrate'));
      await insideOut(fixture, 'abdc');
    }
    assertExit(await svc('db', 'migrate', 'rollback', '-n', '3', '--yes'));
    assert.equal(await orderOf(fixture), 'abdc');
  },
  THREE,
  committingEngines,
);

on(
  'a trigger that is new, placed elsewhere or removed leaves the order that its files describe',
  async (fixture) => {
    const { svc, edit, write } = fixture;
    await adopted(fixture);
    const changes: readonly (readonly [change: () => void, order: string])[] = [
      // Its name comes before others.
      [() => write(file('b1'), trigger('b1', 'set new.n = 1')), 'abdb1c'],
      // It names one that is created later.
      [() => edit(file('a'), (text) => text.replace(/for each row/i, '$& FOLLOWS c')), 'bdb1ca'],
      [() => remove(fixture, file('b1')), 'bdca'],
    ];
    const orders = [await orderOf(fixture)];
    for (const [change, order] of changes) {
      change();
      assertExit(await svc('db', 'schema', 'generate'));
      assertExit(await svc('db', 'migrate'));
      await insideOut(fixture, order);
      orders.unshift(order);
    }
    for (const order of orders.slice(1)) {
      assertExit(await svc('db', 'migrate', 'rollback', '--yes'));
      assert.equal(await orderOf(fixture), order);
    }
    assertExit(await svc('db', 'migrate'));
    await insideOut(fixture, 'bdca');
  },
  THREE,
  committingEngines,
);

on(
  'a trigger is created after the one that it names',
  async (fixture) => {
    const { svc, write } = fixture;
    await adopted(fixture);
    write(file('a'), trigger('a', 'set new.n = 1', 'follows `c`'));
    write(file('b'), trigger('b', 'set new.n = 2', 'precedes c'));
    write(file('c'), trigger('c', 'set new.n = 3'));
    assertExit(await svc('db', 'schema', 'generate'));
    assertExit(await svc('db', 'migrate'));
    await insideOut(fixture, 'bca');
    assertExit(await svc('db', 'migrate', 'rollback', '--yes'));
    assert.equal(await orderOf(fixture), '');
  },
  TABLES,
  committingEngines,
);

on(
  'a trigger that another one names is not removed without it',
  async (fixture) => {
    const { svc } = fixture;
    await adopted(fixture);
    remove(fixture, file('b'));
    const refused = assertExit(await svc('db', 'schema', 'generate'), 2);
    assert.match(refused.stderr, /trigger "users\.d" has its place next to a removed one\.[\s\S]*"trigger\/users\.b"/);
  },
  THREE,
  committingEngines,
);

on(
  'a trigger of another table than its file says is refused with the name of the file that it needs',
  async (fixture) => {
    const { svc, edit } = fixture;
    await adopted(fixture);
    edit(file('b'), (text) => text.replace('`users`', 'log').replace(' users', ' log'));
    const refused = assertExit(await svc('db', 'schema', 'generate'), 2);
    assert.match(refused.stderr, /Rename the file to log\.b\.sql/);
  },
  THREE,
  committingEngines,
);
