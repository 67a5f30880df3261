import * as assert from 'node:assert/strict';
import { adopted, makeAgain, OBJECTS, on, postgresql, types } from './kit/object-files.ts';
import { assertExit, json } from './kit/project.ts';

/** Aggregates of PostgreSQL: a file each, created after the functions that they call and before what calls them. */

const AGGREGATES = `
create type pair as (low int, high int);
create function z_add(s bigint, v int) returns bigint language sql immutable parallel safe as $$ select s + coalesce(v, 0) $$;
create function z_add(s bigint, v bigint) returns bigint language sql immutable parallel safe as $$ select s + v $$;
create function z_take(s bigint, v int) returns bigint language sql immutable as $$ select s - coalesce(v, 0) $$;
create function z_end(s bigint) returns text language sql immutable as $$ select '=' || s $$;
create function z_more(s bigint, v int) returns text language sql immutable as $$ select '+' || s $$;
create function wide(s pair, v int) returns pair language sql immutable as $$ select least(s.low, v), greatest(s.high, v) $$;
create function z_list(s int[], v int) returns int[] language sql immutable as $$ select s || v $$;
create function z_middle(s int[], at float8) returns int language sql immutable as $$ select s[1 + floor(cardinality(s) * at)::int] $$;
create function z_rank(s int[], at int) returns int language sql immutable as $$ select count(*)::int + 1 from unnest(s) u where u < at $$;
create function z_count(s bigint) returns bigint language sql immutable as $$ select s + 1 $$;
create aggregate a_total(int) (sfunc = z_add, stype = bigint, sspace = 16, initcond = '0', finalfunc = z_end, combinefunc = z_add, parallel = safe);
comment on aggregate a_total(int) is 'with a sign';
create aggregate "Moving one"(v int) (sfunc = z_add, stype = bigint, initcond = '0', finalfunc = z_more, finalfunc_extra, finalfunc_modify = shareable,
  msfunc = z_add, minvfunc = z_take, mstype = bigint, msspace = 24, mfinalfunc = z_end, minitcond = '5', parallel = restricted);
create aggregate a_written(int) (sfunc = z_add, stype = bigint, msfunc = z_add, minvfunc = z_take, mstype = bigint, mfinalfunc = z_more, mfinalfunc_extra, mfinalfunc_modify = read_write, finalfunc = z_end);
create aggregate wide(int) (sfunc = wide, stype = pair, initcond = '(9,0)');
create aggregate a_last(int) (sfunc = int4larger, stype = int, sortop = >);
create aggregate a_last(text) (sfunc = text_larger, stype = text, initcond = '');
create aggregate a_count(*) (sfunc = z_count, stype = bigint, initcond = '0');
comment on aggregate a_count(*) is 'of all';
create aggregate a_middle(at float8 order by v int) (sfunc = z_list, stype = int[], initcond = '{}', finalfunc = z_middle);
create aggregate a_rank(at int order by v int) (sfunc = z_list, stype = int[], initcond = '{}', finalfunc = z_rank, finalfunc_modify = read_only, hypothetical);
create aggregate a_all(variadic int[]) (sfunc = array_cat, stype = int[], initcond = '{}');
`;

const USED = `
create table sales (id int primary key, shop text, amount int);
create function a_of(s text) returns text language sql stable as $$ select a_total(amount) from sales where shop = s $$;
create view a_shops as select shop, a_total(amount) as total, a_count(*) as counted from sales group by shop;
create table prices (id int primary key, price int);
create function z_row(s bigint, v prices) returns bigint language sql as $$ select s + v.price $$;
create aggregate a_rows(prices) (sfunc = z_row, stype = bigint, initcond = '0');
`;

const ROWS = `insert into sales values (1, 'a', 3), (2, 'a', 4), (3, 'b', 5); insert into prices values (1, 2), (2, 3);`;

const RESULTS = `select a_of('a') as "of", (select string_agg(shop || total || counted, ' ' order by shop) from a_shops) as shops,
  (select string_agg(m, ' ') from (select "Moving one"(amount) over (order by id rows between 1 preceding and current row) as m from sales) one) as moving,
  (select wide(amount)::text || a_last(amount) || a_last(shop) || a_middle(0.5) within group (order by amount) || a_rank(4) within group (order by amount) from sales) as more,
  (select a_rows(p)::text from prices p) as rows`;

const EXPECTED = [{ of: '=7', shops: 'a=72 b=51', moving: '=8 =12 =14', more: '(3,5)5b42', rows: '5' }];

on(
  'aggregates of every kind are made again from their files',
  (fixture, engine) =>
    makeAgain(fixture, engine, async (made) => {
      await made.query(ROWS);
      assert.deepEqual(await made.query(RESULTS), EXPECTED);
    }),
  AGGREGATES + USED,
  postgresql,
);

const FILE = `${OBJECTS}/aggregate/a_total.sql`;

on(
  'a changed aggregate is replaced in place, or dropped and created if its result may be another; its grants stay',
  async (fixture) => {
    const { svc, edit, query } = fixture;
    await adopted(fixture);
    await query('revoke execute on function a_total(int) from public');
    const before = await fixture.objects();
    const found = () =>
      query(`select a_of('a') as "of", proacl::text as acl, oid::int from pg_proc where proname = 'a_total'`);
    const [first] = await found();
    assert.equal(first?.of, '=7');

    edit(FILE, (text) => text.replace("INITCOND = '0'", "INITCOND = '100'"));
    assertExit(await svc('db', 'schema', 'generate'));
    assert.deepEqual(types(fixture), ['replaceObject aggregate/a_total']);
    assertExit(await svc('db', 'migrate'));
    assert.deepEqual(await found(), [{ ...first, of: '=107' }]);
    assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);

    edit(FILE, (text) => text.replace(/ {2}FINALFUNC = z_end,\n/, ''));
    assertExit(await svc('db', 'schema', 'generate'));
    assert.deepEqual(types(fixture), [
      'dropObject view/a_shops',
      'dropObject aggregate/a_total',
      'createObject aggregate/a_total',
      'createObject view/a_shops',
    ]);
    const dry = json(assertExit(await svc('db', 'migrate', '--dry-run', '--json')));
    assert.match(JSON.stringify(dry), /DROP ROUTINE/);
    assertExit(await svc('db', 'migrate', '--allow-destructive'));
    const [third] = await found();
    assert.equal(third?.of, '107');
    assert.equal(third?.acl, first?.acl);
    assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);

    assertExit(await svc('db', 'migrate', 'rollback', '-n', '2', '--allow-destructive'));
    assert.deepEqual(await fixture.objects(), before);
    const [last] = await found();
    assert.deepEqual([last?.of, last?.acl], [first?.of, first?.acl]);
  },
  AGGREGATES + USED + ROWS,
  postgresql,
);

on(
  'an aggregate over an operator that svc cannot create is left out, with the view that calls it, and both are said',
  async (fixture) => {
    const { warnings, objects } = json(assertExit(await fixture.svc('db', 'schema', 'pull', '--json')));
    assert.deepEqual(
      objects.filter((key: string) => !key.startsWith('function/')),
      [],
    );
    const said = warnings.join('\n');
    for (const name of ['aggregate "a_top" is left out: it uses operator lib.>>>>', 'view "tops" is left out'])
      assert.match(said, new RegExp(name));
  },
  `create schema lib;
create function lib.z_above(a int, b int) returns boolean language sql immutable as 'select a > b';
create operator lib.>>>> (leftarg = int, rightarg = int, function = lib.z_above);
create aggregate a_top(int) (sfunc = int4larger, stype = int, sortop = operator(lib.>>>>));
create table t (id int primary key);
create view tops as select a_top(id) as top from t;`,
  postgresql,
);
