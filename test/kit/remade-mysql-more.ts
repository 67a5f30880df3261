import type { RemadeCases } from './remade-cases.ts';

/** What is not a table, and what only one of the two engines has. */
export const MYSQL_OBJECTS: RemadeCases = {
  trigger_order:
    'create table @ (id int primary key, n int); create trigger @_z before insert on @ for each row set new.n = 1; create trigger @_a before insert on @ for each row set new.n = new.n + 1; create trigger @_m before insert on @ for each row precedes @_z set new.n = 5',
  view_options:
    'create table @_t (id int primary key, n int); create algorithm = merge sql security invoker view @ as select id, n from @_t where n > 1 with cascaded check option; create view @_a as select n from @',
  routine_function:
    "create function @(a int, b varchar(20) character set latin1) returns varchar(40) deterministic sql security invoker comment 'it''s' return concat(a, b)",
  routine_procedure:
    "create procedure @(in a int, out b int) reads sql data begin declare continue handler for sqlexception set b = 1; if a > 1 then select length('a;b') into b; end if; end",
  routine_in_view:
    'create table @_t (id int primary key); create function @_f(a int) returns int deterministic return a + 1; create view @ as select @_f(id) as n from @_t',
  event_every: "create event @ on schedule every 1 day on completion preserve disable comment 'x' do select 1",
  key_descending: 'create table @ (a int, b int, primary key (a desc, b))',
  index_descending: 'create table @ (id int primary key, a int, b int, key @_k (a, b), key @_d (b, a))',
  engine_memory: 'create table @ (id int not null, a int, key @_k (a)) engine = memory',
  names_unicode: 'create table @ (`ключ` int primary key, `t b` int, key `ü k` (`t b`))',
};

export const MYSQL_ONLY: RemadeCases = {
  index_parser: 'create table @ (id int primary key, a text, fulltext key @_f (a) with parser ngram)',
  index_hidden: 'create table @ (id int primary key, a int, key @_k (a) invisible)',
  index_functional:
    "create table @ (id int primary key, c varchar(50), key @_k ((lower(c))), key @_l ((coalesce(c, 'x')), id desc))",
  check_not_enforced: 'create table @ (id int primary key, a int, constraint @_k check (a > 0) not enforced)',
  table_compression: "create table @ (id int primary key) compression = 'zlib'",
  table_tablespace: 'create table @ (id int primary key) tablespace innodb_system',
  column_storage: 'create table @ (id int primary key, a int column_format fixed)',
  geometry_system: 'create table @ (id int primary key, p point not null srid 4326, spatial key @_k (p))',
};

export const MYSQL_ONLY_SAID: readonly string[] = [
  'check_not_enforced',
  'column_storage',
  'index_parser',
  'table_tablespace',
];

export const MARIADB_ONLY: RemadeCases = {
  index_ignored: 'create table @ (id int primary key, a int, key @_k (a) ignored)',
  index_block: 'create table @ (id int primary key, a int, key @_k (a) key_block_size = 1024)',
  table_page_compressed: 'create table @ (id int primary key) page_compressed = 1 page_compression_level = 5',
  table_aria: 'create table @ (id int primary key, a varchar(10)) engine = aria transactional = 1',
  table_period: 'create table @ (id int primary key, s date, e date, period for p (s, e))',
};

export const MARIADB_ONLY_SAID: readonly string[] = ['index_block', 'table_period'];
