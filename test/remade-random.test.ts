import * as assert from 'node:assert/strict';
import { sqlEngines } from './kit/engines.ts';
import type { RemadeCases } from './kit/remade-cases.ts';
import { MYSQL_SETUP } from './kit/remade-mysql.ts';
import { POSTGRESQL_SETUP } from './kit/remade-postgresql.ts';
import { remake } from './kit/remake.ts';
import { test } from './kit/test.ts';

/** Random tables of native types, indexes, partitions and settings: what is pulled and made again is the same. */

const SEED = Number(process.env.SVC_SEED ?? 20261125);
const TABLES = 12;

interface Parts {
  readonly setup: string;
  readonly columns: readonly string[];
  /** `@` is the table and `#` a column. */
  readonly constraints: readonly string[];
  readonly after: readonly string[];
}

const POSTGRESQL: Parts = {
  setup: POSTGRESQL_SETUP,
  columns: [
    "text not null default 'it''s'",
    'varchar(7)',
    'timestamptz(3) default now()',
    'timestamp(0)',
    'numeric(12,4) default 1.5',
    'int[]',
    "mood not null default 'ok'",
    'positive',
    'pair',
    'serial',
    'bigint generated always as identity (start 5)',
    'int generated always as (id * 3) stored',
    `text collate "C"`,
    "jsonb default '{}'",
    'uuid default gen_random_uuid()',
    "interval default '1 day'",
    'boolean default true not null',
    'bytea',
  ],
  constraints: [
    'check (id > #)',
    'unique (#) deferrable',
    'unique (#, id) include (id)',
    'constraint "@ named" check (# is not null or id > 0)',
  ].map((one) => one.replace('id > #', 'id > 3')),
  after: [
    'create index on @ (#)',
    'create index @_desc on @ (id, # desc nulls last)',
    'create unique index @_part on @ (id) where # is not null',
    "create index @_why on @ (#); comment on index @_why is 'why; not'",
    "comment on column @.# is 'about'",
    'alter table @ alter # set statistics 77',
    'alter table @ replica identity full',
    'alter table @ enable row level security',
    'create view @_view as select id, # from @',
    'create trigger @_t before update on @ for each row execute function quiet()',
    'alter table @ set (fillfactor = 66)',
    'create table @_child (extra int) inherits (@)',
  ],
};

const MYSQL: Parts = {
  setup: MYSQL_SETUP,
  columns: [
    'int unsigned',
    "varchar(7) not null default 'it''s'",
    'datetime(6) default current_timestamp(6)',
    'timestamp null default null on update current_timestamp',
    'decimal(10,3) unsigned',
    "enum('a','b''c') default 'a'",
    "set('x','y')",
    'bigint not null',
    'binary(5)',
    'double',
    'tinyint(1) default 1',
    'varchar(20) character set latin1',
    'varchar(30) collate utf8mb4_bin',
    'int generated always as (id * 3) virtual',
    'year',
    "date comment 'it''s'",
    'int invisible default 4',
  ],
  constraints: [
    'check (id > 3)',
    'unique key (#)',
    'key `@ key` (#, id)',
    'constraint `@ check` check (# is not null or id > 0)',
  ],
  after: [
    'create index @_desc on @ (id, # desc)',
    "create index @_why on @ (#) comment 'why'",
    'create view @_view as select id, # from @',
    'create trigger @_t before insert on @ for each row set new.id = new.id',
    "alter table @ comment 'about it'",
    'alter table @ partition by hash (id) partitions 3',
    'alter table @ row_format = dynamic',
  ],
};

/** A small generator of numbers (mulberry32): the same for the same seed. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * below);
  };
}

function randomTables({ columns, constraints, after }: Parts, isMysql: boolean): RemadeCases {
  const below = numbers(SEED);
  const some = (list: readonly string[], most: number): string[] =>
    [...list]
      .map((one) => [below(1000), one] as const)
      .sort(([a], [b]) => a - b)
      .slice(0, below(most + 1))
      .map(([, one]) => one);
  return Object.fromEntries(
    Array.from({ length: TABLES }, (_, index): [string, string] => {
      const named = some(columns, 7).map((type, at) => ({ name: `c${at}`, type }));
      const usable = named
        .filter(({ type }) => !/json|pair|bytea|\[\]|generated|text\b/.test(type))
        .map(({ name }) => name);
      const about = (text: string): string => text.replaceAll('#', usable[below(usable.length)] ?? 'id');
      const lines = ['id int primary key', ...named.map(({ name, type }) => `${name} ${type}`)];
      const own = usable.length === 0 ? [] : some(constraints, 2);
      const isFree = (text: string): boolean => usable.length > 0 || !text.includes('#');
      const more = some(after, 4).filter(
        (text) => isFree(text) && !(own.join().includes('unique') && text.includes('partition')),
      );
      const separator = isMysql ? ';' : '; ';
      return [
        `random_${index}`,
        [`create table @ (${[...lines, ...own.map(about)].join(', ')})`, ...more.map(about)].join(separator),
      ];
    }),
  );
}

for (const engine of sqlEngines) {
  const title = `${engine.name}: random tables that were pulled and made again are the same (seed ${SEED})`;
  // The same texts as on PostgreSQL, and a slow start.
  if (engine.name === 'pglite') continue;
  if (engine.missing !== undefined) test.skip(title, engine.missing);
  else
    test(
      title,
      async () => {
        const isMysql = engine.dialect.name !== 'postgresql';
        const parts = isMysql ? MYSQL : POSTGRESQL;
        const { silent } = await remake(engine, { setup: parts.setup, cases: randomTables(parts, isMysql) });
        assert.deepEqual(silent, []);
      },
      { timeoutMs: 400_000 },
    );
}
