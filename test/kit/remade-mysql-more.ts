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

/** Spellings of SHOW CREATE TABLE, and what fields and keys of the server have beyond those of other engines. */
export const MYSQL_SPELLINGS: RemadeCases = {
  foreign_restrict:
    'create table @ (id int primary key, p int, constraint @_p foreign key (p) references parents (id) on delete restrict on update restrict)',
  foreign_no_action:
    'create table @ (id int primary key, p int, constraint @_p foreign key (p) references parents (id) on delete no action on update no action)',
  foreign_mixed:
    'create table @ (id int primary key, p int, q int, constraint @_p foreign key (p) references parents (id) on delete cascade on update restrict, constraint @_q foreign key (q) references parents (id) on delete set null on update no action)',
  index_btree:
    'create table @ (id int, a int, b int, primary key using btree (id), key @_a (a) using btree, unique key @_b_key (b) using btree)',
  index_hash: 'create table @ (id int primary key, a int, key @_a (a) using hash)',
  index_memory:
    'create table @ (id int, a int, b int, primary key using hash (id), key @_a (a) using btree, unique key @_b using hash (b)) engine = memory',
  index_long:
    'create table @ (id int primary key, a longtext, b longblob, key @_a (a(20)), unique key @_b (b(30)), fulltext key @_f (a))',
  key_prefix_two: 'create table @ (a longtext, b longblob, primary key (a(20), b(3)))',
  key_descending_auto: 'create table @ (a int auto_increment, b int, primary key (a desc))',
  key_descending_referenced:
    'create table @ (a int, b int, primary key (a desc)); create table @_x (id int primary key, a int, constraint @_x_a foreign key (a) references @ (a))',
  key_comment: "create table @ (id int, primary key (id) comment 'the key; it''s')",
  default_emoji:
    "create table @ (id int primary key, a varchar(10) default '😀', b varchar(10) default 'é', c varchar(10) default '?')",
  default_bytes:
    "create table @ (id int primary key, a varbinary(10) default 'abc', b binary(3) default 'abc', c binary(3) default 0x610000, d varbinary(10) default 0x00ff, e varbinary(10) default '')",
  default_uuid_key: 'create table @ (id char(36) primary key default (uuid()), a varchar(36) default (uuid()))',
  default_microseconds:
    "create table @ (id int primary key, a datetime(6) default '2020-01-01 00:00:00.123456', b timestamp(6) not null default '2020-01-01 00:00:00.123456', c time(6) default '10:00:00.123456')",
  default_duration:
    "create table @ (id int primary key, a time default '-10:00:00', b time(3) default '-838:59:59', c time default '100:00:00')",
  type_empty:
    "create table @ (id int primary key, a char(0), b char(0) not null default '', c varchar(0), d binary(0), e varbinary(0))",
};

export const MYSQL_ONLY: RemadeCases = {
  default_now_function: 'create table @ (id int primary key, a datetime default (now()), b timestamp default (now()))',
  default_uuid_bytes:
    'create table @ (id binary(16) primary key default (uuid_to_bin(uuid())), a varchar(64) default (concat(1, uuid())))',
  index_cast:
    "create table @ (id int primary key, j json, c varchar(20), key @_a ((cast(j->>'$.a' as char(20)))), key @_b ((cast(j->'$.tags' as unsigned array)), id), key @_c ((cast(c as signed))))",
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

/** The tables with something that a schema file cannot describe, which a warning says. */
export const MYSQL_ONLY_SAID: readonly string[] = ['column_storage', 'table_tablespace'];

export const MARIADB_ONLY: RemadeCases = {
  default_long:
    "create table @ (id int primary key, a blob default 'x', b text default 'it''s', c tinyblob default 0x00ff, d mediumtext default 5, e text default '', f blob default '', g text default (concat('a','b')), h json default '{}', i text default '😀')",
  default_uuid_type: "create table @ (id uuid primary key default uuid(), b inet6 default '::1')",
  default_sequence: 'create sequence @_s; create table @ (id int primary key default nextval(@_s))',
  default_sequences:
    "create sequence @_s start with 100 minvalue 10 maxvalue 1000 increment by 5 cache 7 cycle; create sequence @_d increment by -1 nocache; create sequence @_c engine = aria comment = 'c'; create table @ (id int primary key default (nextval(@_s) + 1), a int default lastval(@_d), b varchar(20) not null default concat('`x`.', nextval(@_c))); create view @_v as select nextval(@_s) as n",
  key_block: 'create table @ (id int, primary key (id) key_block_size = 4)',
  unique_long: 'create table @ (id int primary key, b blob, c text, unique key @_b (b), unique key @_c (c, id))',
  versioned: "create table @ (id int primary key, a int) comment = 'x' with system versioning",
  versioned_partitions:
    'create table @ (id int primary key, a int) with system versioning partition by system_time (partition p0 history, partition pn current)',
  versioned_interval:
    'create table @ (id int primary key, a int) with system versioning partition by system_time interval 1 month partitions 3',
  versioned_read:
    'create table @ (id int primary key, a int) with system versioning; create view @_v as select id from @; create trigger @_t before insert on @ for each row set new.a = 1',
  versioned_period:
    'create table @ (id int primary key, a int, s timestamp(6) generated always as row start, e timestamp(6) generated always as row end, period for system_time (s, e)) with system versioning partition by system_time limit 1000 partitions 3; create view @_v as select id from @; create view @_w as select id from @_v; create trigger @_t before insert on @ for each row set new.a = 1',
  index_ignored: 'create table @ (id int primary key, a int, key @_k (a) ignored)',
  index_block: 'create table @ (id int primary key, a int, key @_k (a) key_block_size = 1024)',
  table_page_compressed: 'create table @ (id int primary key) page_compressed = 1 page_compression_level = 5',
  table_aria: 'create table @ (id int primary key, a varchar(10)) engine = aria transactional = 1',
  table_period: 'create table @ (id int primary key, s date, e date, period for p (s, e))',
};

/** A check in the definition of a column belongs to the column. */
export const MARIADB_ONLY_SAID: readonly string[] = [
  'check_column',
  'table_period',
  'versioned_period',
  'versioned_period_v',
  'versioned_period_w',
];
