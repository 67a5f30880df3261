import { columns, type RemadeCases } from './remade-cases.ts';

/** Partitions, inheritance, settings and rows: a table for each case, in addition to the columns, indexes and constraints. */
export const POSTGRESQL_TABLES: RemadeCases = {
  partition_list:
    "create table @ (id int, kind text) partition by list (kind); create table @_a partition of @ for values in ('a', 'it''s'); create table @_null partition of @ for values in (null); insert into @ values (1, 'a'), (2, null)",
  partition_hash:
    'create table @ (id int) partition by hash (id); create table @_0 partition of @ for values with (modulus 2, remainder 0); create table @_1 partition of @ for values with (modulus 2, remainder 1); insert into @ select g from generate_series(1, 9) g',
  partition_default:
    "create table @ (id int, at date) partition by range (at); create table @_old partition of @ for values from (minvalue) to ('2020-01-01'); create table @_rest partition of @ default; insert into @ values (1, '2019-01-01'), (2, '2029-01-01')",
  partition_two_keys:
    "create table @ (a int, b text) partition by range (a, b); create table @_1 partition of @ for values from (1, 'a') to (1, maxvalue)",
  partition_expression:
    "create table @ (id int, at timestamp) partition by range (date_trunc('month', at)); create table @_1 partition of @ for values from ('2020-01-01') to ('2020-02-01')",
  partition_lower:
    "create table @ (id int, name text) partition by list (lower(name)); create table @_1 partition of @ for values in ('x')",
  partition_opclass:
    "create table @ (name text) partition by range (name text_pattern_ops); create table @_1 partition of @ for values from ('a') to ('b')",
  partition_collation: `create table @ (name text) partition by range (name collate "C"); create table @_1 partition of @ for values from ('a') to ('b')`,
  partition_negative:
    'create table @ (n numeric) partition by range (n); create table @_1 partition of @ for values from (-1.5) to (2.25)',
  partition_timestamptz:
    "create table @ (at timestamptz not null) partition by range (at); create table @_1 partition of @ for values from ('2020-01-01 00:00:00+00') to ('2020-02-01 00:00:00+00')",
  partition_bool:
    'create table @ (done boolean, n int) partition by list (done); create table @_open partition of @ for values in (false)',
  partition_nested:
    "create table @ (id int, at date, kind text) partition by range (at); create table @_1 partition of @ for values from ('2020-01-01') to ('2021-01-01') partition by list (kind); create table @_1_a partition of @_1 for values in ('a'); create table @_1_d partition of @_1 default partition by hash (id); create table @_1_d_0 partition of @_1_d for values with (modulus 1, remainder 0); insert into @ values (1, '2020-02-02', 'z')",
  partition_key:
    "create table @ (id bigint generated always as identity, at date not null, primary key (id, at)) partition by range (at); create table @_1 partition of @ for values from ('2020-01-01') to ('2021-01-01'); insert into @ (at) values ('2020-03-03')",
  partition_unique:
    'create table @ (id int, kind int, unique (id, kind)) partition by list (kind); create table @_1 partition of @ for values in (1)',
  partition_index:
    'create table @ (id int, c text) partition by list (id); create index @_lower on @ (lower(c)); create table @_1 partition of @ for values in (1); create index @_1_own on @_1 (c) where c is not null',
  partition_foreign:
    'create table @ (id int, p int references parents (id)) partition by list (id); create table @_1 partition of @ for values in (1)',
  partition_referenced:
    'create table @ (id int primary key) partition by list (id); create table @_1 partition of @ for values in (1); create table @_child (id int primary key, p int references @ (id)); insert into @ values (1); insert into @_child values (1, 1)',
  partition_check:
    'create table @ (id int, c int, constraint @_c check (c > 0)) partition by list (id); create table @_1 partition of @ for values in (1); alter table @_1 add constraint @_own check (c < 9)',
  partition_default_value:
    'create table @ (id int, c int default 1, d int) partition by list (id); create table @_1 partition of @ for values in (1); alter table @_1 alter c set default 2, alter d set not null',
  partition_no_default:
    'create table @ (id int, c int default 1) partition by list (id); create table @_1 partition of @ for values in (1); alter table @_1 alter c drop default',
  partition_computed:
    'create table @ (id int, c int generated always as (id * 2) stored) partition by list (id); create table @_1 partition of @ for values in (1)',
  partition_serial:
    'create table @ (id serial, kind int) partition by list (kind); create table @_1 partition of @ for values in (1); insert into @ (kind) values (1)',
  partition_options:
    'create table @ (id int) partition by list (id); create table @_1 partition of @ for values in (1) with (fillfactor = 70, autovacuum_enabled = false)',
  partition_unlogged:
    'create table @ (id int) partition by list (id); create unlogged table @_1 partition of @ for values in (1)',
  partition_comment:
    "create table @ (id int, c int) partition by list (id); comment on table @ is 'all'; create table @_1 partition of @ for values in (1); comment on table @_1 is 'one'; comment on column @_1.c is 'c'",
  partition_trigger:
    'create table @ (id int) partition by list (id); create trigger @_t before insert on @ for each row execute function quiet(); create table @_1 partition of @ for values in (1); create trigger @_own after insert on @_1 for each row execute function quiet()',
  partition_policy:
    'create table @ (id int) partition by list (id); alter table @ enable row level security; create policy p on @ using (id > 0); create table @_1 partition of @ for values in (1); alter table @_1 enable row level security; create policy q on @_1 using (id > 1)',
  partition_attached:
    'create table @ (id int not null, c text) partition by list (id); create table @_1 (id int not null, c text); insert into @_1 values (1); alter table @ attach partition @_1 for values in (1)',
  partition_none: 'create table @ (id int, at date) partition by range (at)',
  partition_quoted:
    'create table "@ Odd" (id int, "At" date) partition by range ("At"); create table "@ Odd 1" partition of "@ Odd" for values from (\'2020-01-01\') to (\'2021-01-01\')',
  partition_enum:
    "create table @ (id int, m mood) partition by list (m); create table @_1 partition of @ for values in ('sad')",
  partition_storage:
    'create table @ (id int, c text) partition by list (id); alter table @ alter c set storage external; create table @_1 partition of @ for values in (1); create table @_2 partition of @ for values in (2); alter table @_2 alter c set storage main',
  partition_statistics:
    'create table @ (id int, c text) partition by list (id); create table @_1 partition of @ for values in (1); alter table @_1 alter c set statistics 77; create statistics @_s on id, c from @_1',
  inherit_plain:
    "create table @_a (id int, note text); create table @ (extra int) inherits (@_a); insert into @ values (1, 'a', 2)",
  inherit_key: 'create table @_a (id int primary key, note text); create table @ (primary key (id)) inherits (@_a)',
  inherit_two:
    'create table @_a (id int); create table @_b (other text); create table @ (extra int) inherits (@_a, @_b)',
  inherit_deep:
    'create table @_a (id int); create table @_b (b int) inherits (@_a); create table @ (c int) inherits (@_b)',
  inherit_check:
    'create table @_a (id int, check (id > 0)); create table @ (extra int check (extra > 1)) inherits (@_a)',
  inherit_default:
    "create table @_a (id int, kind text default 'a'); create table @ () inherits (@_a); alter table @ alter kind set default 'b', alter id set not null",
  inherit_merged: 'create table @_a (id int, note text); create table @ (note text, extra int) inherits (@_a)',
  inherit_serial:
    'create table @_a (id serial primary key); create table @ (n bigserial, primary key (n)) inherits (@_a)',
  inherit_identity: 'create table @_a (id int); create table @ (n int generated always as identity) inherits (@_a)',
  inherit_index:
    "create table @_a (id int, note text); create table @ (extra int) inherits (@_a); create unique index @_i on @ (extra, note); comment on index @_i is 'x'",
  inherit_foreign:
    'create table @_a (id int); create table @ (p int references parents (id) on delete cascade) inherits (@_a)',
  inherit_computed:
    'create table @_a (id int); create table @ (c int generated always as (id + 1) stored) inherits (@_a)',
  inherit_collation:
    'create table @_a (id int); create table @ (c varchar(9) collate "C" not null default \'x\') inherits (@_a)',
  inherit_options: 'create table @_a (id int); create table @ (c text) inherits (@_a) with (fillfactor = 60)',
  inherit_trigger:
    'create table @_a (id int); create table @ () inherits (@_a); create trigger t before update on @ for each row execute function quiet()',
  settings_key_comment: "create table @ (id int primary key); comment on constraint @_pkey on @ is 'the key'",
  settings_key_index_comment: "create table @ (id int primary key); comment on index @_pkey is 'of the key'",
  settings_foreign_comment:
    "create table @ (id int primary key, p int references parents (id)); comment on constraint @_p_fkey on @ is 'it''s'",
  settings_unique_comment:
    "create table @ (id int primary key, c text unique); comment on constraint @_c_key on @ is E'two\\nlines'",
  settings_clustered_key: 'create table @ (id int primary key); alter table @ cluster on @_pkey',
  settings_replica_index:
    'create table @ (id int primary key, c int not null); create unique index @_c on @ (c); alter table @ replica identity using index @_c',
  settings_replica_nothing: 'create table @ (id int primary key); alter table @ replica identity nothing',
  settings_storage_main: 'create table @ (id int primary key, c jsonb); alter table @ alter c set storage main',
  settings_storage_plain: 'create table @ (id int primary key, c text); alter table @ alter c set storage plain',
  settings_distinct:
    'create table @ (id int primary key, c int); alter table @ alter c set (n_distinct = -0.5, n_distinct_inherited = 10)',
  settings_index_statistics:
    'create table @ (id int primary key, c int); create index @_x on @ ((c + 1)); alter index @_x alter column 1 set statistics 300',
  settings_many:
    'create table @ (id int primary key, c text, "D" text); create index "@ I" on @ (c); comment on index "@ I" is \'a; b\'; alter table @ alter "D" set storage external, alter c set statistics 10; alter table @ replica identity full',
  comment_unusual: "create table @ (id int primary key); comment on table @ is E'back\\\\slash and ''quote'''",
  comment_everything:
    "create table @ (id int primary key, c text); comment on table @ is 't'; comment on column @.id is 'i'; comment on column @.c is 'c'",
  column_dropped:
    "create table @ (id int primary key, gone int, c text); alter table @ drop gone; insert into @ values (1, 'a')",
  index_two_same: 'create table @ (id int primary key, c int); create index @_a on @ (c); create index @_b on @ (c)',
  index_case_name: 'create table @ (id int primary key, c int); create index "@ Upper" on @ (c)',
  index_where_in: "create table @ (id int primary key, c text); create index @_c on @ (c) where c in ('a', 'b')",
  index_where_bool: 'create table @ (id int primary key, c boolean); create index @_c on @ (id) where c',
  index_cast: 'create table @ (id int primary key, c text); create index @_c on @ ((c::int))',
  index_coalesce: 'create table @ (id int primary key, c int); create unique index @_c on @ (coalesce(c, -1))',
  index_function: 'create table @ (id int primary key, c text); create index @_c on @ (md5(c))',
  index_trgm_style:
    "create table @ (id int primary key, c text); create index @_c on @ using gist (to_tsvector('simple', c))",
  index_brin_many:
    'create table @ (id int primary key, a int, b timestamptz); create index @_c on @ using brin (a, b) with (autosummarize = on)',
  index_gin_option:
    'create table @ (id int primary key, c text[]); create index @_c on @ using gin (c) with (fastupdate = off)',
  index_deduplicate:
    'create table @ (id int primary key, c int); create index @_c on @ (c) with (deduplicate_items = off)',
  index_varchar_pattern:
    'create table @ (id int primary key, c varchar(20)); create index @_c on @ (c varchar_pattern_ops desc)',
  index_invalid_names: 'create table @ (id int primary key, "a b" int); create index "@-x" on @ ("a b")',
  unique_case: 'create table @ (id int primary key, "C" text, constraint "@ U" unique ("C"))',
  unique_many: 'create table @ (id int primary key, a int, b int, unique (a, b), unique (b, a))',
  unique_immediate: 'create table @ (id int primary key, a int unique deferrable initially immediate)',
  unique_fillfactor: 'create table @ (id int primary key, a int, unique (a) with (fillfactor = 50))',
  key_from_index:
    'create table @ (id int not null); create unique index @_i on @ (id); alter table @ add primary key using index @_i',
  unique_from_index:
    'create table @ (id int not null); create unique index @_i on @ (id); alter table @ add unique using index @_i',
  key_big: 'create table @ (a int, b text, c date, d uuid, primary key (d, a, c, b))',
  check_function: 'create table @ (id int primary key, c text, check (length(c) between 1 and 10))',
  check_case: "create table @ (id int primary key, c text, check (case when id > 1 then c = 'a' else true end))",
  check_array: "create table @ (id int primary key, c text[], check (array_length(c, 1) < 3 and not ('x' = any (c))))",
  check_true: 'create table @ (id int primary key, constraint @_t check (true))',
  check_many: 'create table @ (id int primary key, a int check (a > 0) check (a < 9), b int check (b <> 1))',
  check_domain_cast: 'create table @ (id int primary key, a int, check (a::positive > 1))',
  check_enum: "create table @ (id int primary key, m mood check (m <> 'sad'))",
  check_null: 'create table @ (id int primary key, a int, b int, check (num_nonnulls(a, b) = 1))',
  check_like: "create table @ (id int primary key, c text check (c like 'a%' and c not ilike '%B'))",
  check_range_operator: 'create table @ (id int primary key, c int4range check (c && int4range(0, 10)))',
  check_no_inherit_named: 'create table @ (id int primary key, a int, constraint @_n check (a > 0) no inherit)',
  foreign_no_action_update:
    'create table @ (id int primary key, p int references parents (id) on update no action on delete no action)',
  foreign_restrict_update: 'create table @ (id int primary key, p int references parents (id) on update restrict)',
  foreign_to_pair_other_order:
    'create table @ (id int primary key, p int, q int, constraint @_o foreign key (q, p) references pairs (b, a))',
  foreign_two: 'create table @ (id int primary key, p int references parents (id), q int references parents (id))',
  foreign_same_twice:
    'create table @ (id int primary key, p int, constraint @_a foreign key (p) references parents (id), constraint @_b foreign key (p) references parents (id) on delete cascade)',
  foreign_circle:
    'create table @_a (id int primary key, b int); create table @_b (id int primary key, a int references @_a (id)); alter table @_a add foreign key (b) references @_b (id) deferrable initially deferred',
  foreign_set_null_columns:
    'create table @ (id int primary key, p int, q int, foreign key (p, q) references pairs (a, b) on delete set null)',
  foreign_key_is_key: 'create table @ (id int primary key references parents (id))',
  identity_negative:
    'create table @ (id int generated always as identity (start -1 increment -1 minvalue -100 maxvalue -1) primary key)',
  identity_small: 'create table @ (id smallint generated by default as identity primary key)',
  identity_second: 'create table @ (id int primary key, n int generated always as identity unique)',
  sequence_default: "create sequence @_s; create table @ (id int primary key, n int default nextval('@_s'))",
  sequence_owned:
    "create sequence @_s start 7; create table @ (id int primary key, n int default nextval('@_s')); alter sequence @_s owned by @.n",
  sequence_owned_key:
    "create sequence @_s increment 2; create table @ (id bigint primary key default nextval('@_s')); alter sequence @_s owned by @.id",
  sequence_shared:
    "create sequence @_s; create table @ (id int primary key default nextval('@_s')); create table @_other (id int primary key default nextval('@_s'))",
  sequence_int: "create sequence @_s as int; create table @ (id int primary key default nextval('@_s'))",
  sequence_alone: 'create sequence @_s as smallint minvalue 5 maxvalue 50 cycle; create table @ (id int primary key)',
  sequence_text: "create sequence @_s; create table @ (id text primary key default 'n' || nextval('@_s'))",
  serial_second: 'create table @ (id int primary key, n serial)',
  serial_renamed: 'create table @_old (id serial primary key); alter table @_old rename to @',
  serial_nullable: 'create table @ (id int primary key, n serial); alter table @ alter n drop not null',
  ...columns({
    wide_numeric: 'numeric(1000, 500)',
    numeric_zero: 'numeric(5, 0)',
    char_array: 'char(3)[]',
    timestamptz_array: 'timestamptz(3)[]',
    bit_array: 'bit(3)[]',
    interval_array: "interval[] default '{}'",
    daterange: "daterange default '[2020-01-01,2021-01-01)'",
    multirange_like: 'numrange',
    box: 'box',
    circle: "circle default '<(0,0),1>'",
    line: 'line',
    lseg: 'lseg',
    path_type: 'path',
    macaddr8: 'macaddr8',
    pg_lsn: 'pg_lsn',
    jsonpath: 'jsonpath',
    name_type: 'name',
    regproc: 'regproc',
    regtype: "regtype default 'int4'::regtype",
    xid: 'xid',
    txid: 'txid_snapshot',
    interval_year: 'interval year to month',
    interval_3: 'interval(3)',
    time_0: 'time(0)',
    timetz_plain: 'timetz',
    domain_array: 'positive[]',
    composite_array: 'pair[]',
    composite_default: 'pair default row(1, 2)::pair',
    domain_default: 'positive default 4',
    enum_array_default: "mood[] default '{ok}'",
    enum_expression: "mood default (case when random() > 2 then 'sad' else 'ok' end)::mood",
    computed_concat: "text generated always as (coalesce(id::text, '') || '-' || 'x') stored",
    computed_json: 'int[] generated always as (array[id, id]) stored',
    computed_tsvector: "tsvector generated always as (to_tsvector('english', id::text)) stored",
    computed_not_null: 'int generated always as (id) stored not null unique',
    default_sub: "text default substr(md5('x'), 1, 8)",
    default_array_nested: "int[] default '{{1,2},{3,4}}'",
    default_json_array: "jsonb default '[]'::jsonb not null",
    default_range: 'int4range default int4range(1, 5)',
    default_interval_now: "timestamptz default now() + interval '1 day'",
    default_date_now: "date default (now() at time zone 'UTC')::date",
    default_epoch: 'bigint default (extract(epoch from now()) * 1000)::bigint',
    default_uuid_text: 'text default gen_random_uuid()::text',
    default_setting: "text default current_setting('application_name', true)",
    default_session: 'text default session_user',
    default_negative_numeric: 'numeric(6,2) default -1.50',
    default_exponent: 'double precision default 1e-7',
    default_nan: "double precision default 'NaN'",
    default_infinite_numeric: "real default '-Infinity'",
    default_long: `text default '${'x'.repeat(300)}'`,
    default_unicode: "text default 'Grüße ✓ 🎈'",
    default_newline: "text default E'a\\nb\\tc'",
    default_backslash: "text default 'a\\b'",
    default_percent: "text default '100% of $1'",
    default_keyword: "text default 'NULL'",
    default_date_special: "date default 'epoch'",
    default_boolean_text: "boolean default 't' not null",
    default_bit_hex: "bit varying default x'1f'",
    check_self: 'int check (c is null or c <> id)',
    collation_computed: `text generated always as (id::text) stored collate "C"`,
  }),
};
