import type { RemadeCases } from './remade-cases.ts';

/** What uses another schema, or a view before it is there. Of a schema that is not listed, it is left out with a warning. */
export const POSTGRESQL_OTHERS: RemadeCases = {
  other_view:
    'create schema @_x; create table @_x.t (id int primary key); insert into @_x.t values (1); create view @ as select id from @_x.t',
  other_view_chain:
    'create schema @_x; create table @_x.t (id int primary key); create view @ as select id from @_x.t; create view @_b as select * from @; create materialized view @_c as select * from @_b; create table @_d (id int primary key); create rule r as on delete to @_d do also select * from @',
  other_matview:
    'create schema @_x; create table @_x.t (id int primary key); create materialized view @ as select id from @_x.t; create index @_i on @ (id)',
  other_view_function:
    "create schema @_x; create function @_x.f() returns int language sql as 'select 1'; create view @ as select @_x.f() as n",
  other_view_type: "create schema @_x; create type @_x.e as enum ('a'); create view @ as select 'a'::@_x.e as n",
  other_trigger:
    "create schema @_x; create function @_x.f() returns trigger language plpgsql as 'begin return new; end'; create table @ (id int primary key); create trigger t before insert on @ for each row execute function @_x.f(); insert into @ values (1)",
  other_trigger_when:
    "create schema @_x; create function @_x.f(int) returns boolean language sql immutable as 'select true'; create table @ (id int primary key); create trigger t before insert on @ for each row when (@_x.f(new.id)) execute function quiet(); insert into @ values (1)",
  other_default:
    "create schema @_x; create function @_x.f() returns int language sql as 'select 1'; create table @ (id int primary key, n int default @_x.f()); insert into @ (id) values (1)",
  other_default_seq:
    "create schema @_x; create sequence @_x.s; create table @ (id int primary key, n int default nextval('@_x.s')); insert into @ (id) values (1)",
  other_default_seq_key:
    "create schema @_x; create sequence @_x.s; create table @ (id int primary key default nextval('@_x.s')); insert into @ default values",
  other_default_seq_text:
    "create schema @_x; create sequence @_x.s; create table @ (id text primary key default 'n' || nextval('@_x.s')); insert into @ default values",
  other_default_type:
    "create schema @_x; create type @_x.e as enum ('a'); create table @ (id int primary key, n text default 'a'::@_x.e::text); insert into @ (id) values (1)",
  other_computed:
    "create schema @_x; create function @_x.f(int) returns int language sql immutable as 'select 1'; create table @ (id int primary key, n int generated always as (@_x.f(id)) stored); insert into @ (id) values (1)",
  other_check:
    "create schema @_x; create function @_x.f(int) returns boolean language sql immutable as 'select true'; create table @ (id int primary key, check (@_x.f(id))); insert into @ (id) values (1)",
  other_index:
    "create schema @_x; create function @_x.f(int) returns int language sql immutable as 'select 1'; create table @ (id int primary key); create index @_i on @ (@_x.f(id)); insert into @ (id) values (1)",
  other_index_part:
    "create schema @_x; create function @_x.f(int) returns boolean language sql immutable as 'select true'; create table @ (id int primary key); create index @_i on @ (id) where @_x.f(id); insert into @ (id) values (1)",
  other_exclude:
    "create schema @_x; create function @_x.f(int) returns boolean language sql immutable as 'select true'; create table @ (id int primary key, r int4range, constraint k exclude using gist (r with &&) where (@_x.f(id)))",
  other_policy:
    "create schema @_x; create function @_x.f() returns int language sql as 'select 1'; create table @ (id int primary key); alter table @ enable row level security; create policy p on @ using (id = @_x.f()); insert into @ values (1)",
  other_policy_table:
    'create schema @_x; create table @_x.t (id int); create table @ (id int primary key); create policy p on @ using (exists (select from @_x.t)); insert into @ values (1)',
  other_rule:
    'create schema @_x; create table @_x.t (id int); create table @ (id int primary key); create rule r as on insert to @ do also insert into @_x.t values (new.id); insert into @ values (1)',
  other_range_subtype:
    'create schema @_x; create domain @_x.d as int; create type @ as range (subtype = @_x.d, subtype_opclass = int4_ops); create table @_t (id int primary key, r @); insert into @_t values (1, null)',
  other_range_diff:
    "create schema @_x; create function @_x.f(float8, float8) returns float8 language sql immutable as 'select $1 - $2'; create type @ as range (subtype = float8, subtype_diff = @_x.f); create view @_v as select null::@ as r",
  other_range:
    "create schema @_x; create type @_x.r as range (subtype = float8); create table @ (id int primary key, r @_x.r); insert into @ values (1, '[1,2)')",
  other_aggregate:
    "create schema @_x; create function @_x.f(int, int) returns int language sql immutable as 'select $1 + $2'; create aggregate @(int) (sfunc = @_x.f, stype = int); create view @_v as select @(n) from generate_series(1, 3) n",
  other_aggregate_called:
    'create schema @_x; create aggregate @_x.a(int) (sfunc = int4larger, stype = int); create view @_v as select @_x.a(n) from generate_series(1, 3) n',
  other_function_sql:
    "create schema @_x; create table @_x.t (id int); create function @() returns bigint language sql as 'select count(*) from @_x.t'",
  other_function_begin:
    'create schema @_x; create table @_x.t (id int); create function @() returns bigint language sql begin atomic select count(*) from @_x.t; end',
  other_function_type:
    "create schema @_x; create type @_x.e as enum ('a'); create function @(@_x.e) returns int language sql as 'select 1'; create function @_r() returns @_x.e language sql as $$ select 'a'::@_x.e $$",
  other_function_setof:
    "create schema @_x; create table @_x.t (id int); create function @() returns setof @_x.t language sql as 'select * from @_x.t'; create view @_v as select * from @()",
  other_function_plpgsql:
    "create schema @_x; create table @_x.t (id int); create function @() returns bigint language plpgsql as 'declare r @_x.t; begin select * from @_x.t into r; return r.id; end'",
  other_function_plpgsql_rowtype:
    "create schema @_x; create table @_x.t (id int); create function @() returns bigint language plpgsql as 'declare r @_x.t%rowtype; n @_x.t.id%type; begin return 1; end'",
  other_domain_type:
    'create schema @_x; create domain @_x.d as int; create domain @ as @_x.d; create table @_t (id int primary key, c @)',
  other_domain_check:
    "create schema @_x; create function @_x.f(int) returns boolean language sql immutable as 'select true'; create domain @ as int check (@_x.f(value)); create table @_t (id int primary key, c @)",
  other_type_composite:
    'create schema @_x; create domain @_x.d as int; create type @ as (a @_x.d); create table @_t (id int primary key, c @)',
  other_column_enum:
    "create schema @_x; create type @_x.e as enum ('a'); create table @ (id int primary key, c @_x.e default 'a'); insert into @ values (1)",
  other_column_domain:
    'create schema @_x; create domain @_x.d as int check (value > 0); create table @ (id int primary key, c @_x.d default 4); insert into @ values (1)',
  other_column_composite:
    'create schema @_x; create type @_x.d as (a int); create table @ (id int primary key, c @_x.d, d @_x.d[]); insert into @ values (1)',
  other_column_row:
    'create schema @_x; create table @_x.d (a int); create table @ (id int primary key, c @_x.d); insert into @ values (1)',
  other_foreign:
    'create schema @_x; create table @_x.d (a int primary key); create table @ (id int primary key references @_x.d (a))',
  other_foreign_in:
    'create schema @_x; create table @ (id int primary key); create table @_x.d (a int references @ (id))',
  other_inherits:
    "create schema @_x; create table @_x.d (a int); create table @ (id int primary key) inherits (@_x.d); insert into @ values (1, 1); create view @_v as select a from @; create table @_c (c text default 'x') inherits (@); create table @_d (id int references @ (id))",
  other_inherited_default:
    "create schema @_x; create function @_x.f() returns int language sql as 'select 1'; create table @_p (id int); create table @ (n int default @_x.f()) inherits (@_p); insert into @ values (1)",
  other_inherited_type:
    'create schema @_x; create domain @_x.d as int; create table @_p (id int); create table @ (n @_x.d) inherits (@_p); insert into @ values (1)',
  other_inherited_fk:
    'create schema @_x; create table @_x.d (a int primary key); create table @_p (id int); create table @ (n int references @_x.d (a)) inherits (@_p); insert into @ values (1)',
  other_inherited_check:
    "create schema @_x; create function @_x.f(int) returns boolean language sql immutable as 'select true'; create table @_p (id int); create table @ (n int check (@_x.f(n))) inherits (@_p); create index @_i on @ (@_x.f(n)) where n is not null; insert into @ values (1)",
  other_partition_default:
    "create schema @_x; create function @_x.f() returns int language sql as 'select 1'; create table @ (id int, n int) partition by list (id); create table @_1 partition of @ for values in (1); alter table @_1 alter n set default @_x.f(); insert into @ values (1)",
  other_partition_fk:
    'create schema @_x; create table @_x.d (a int primary key); create table @ (id int, n int) partition by list (id); create table @_1 partition of @ for values in (1); alter table @_1 add foreign key (n) references @_x.d (a); insert into @ values (1)',
  other_partition_index:
    "create schema @_x; create function @_x.f(int) returns int language sql immutable as 'select 1'; create table @ (id int, n int) partition by list (id); create table @_1 partition of @ for values in (1); create index @_i on @_1 (@_x.f(n)); insert into @ values (1)",
  other_partition_other:
    'create schema @_x; create table @ (id int) partition by list (id); create table @_x.one partition of @ for values in (1); insert into @ values (1)',
  other_partition_of_other:
    'create schema @_x; create table @_x.p (id int primary key) partition by list (id); create table @ partition of @_x.p for values in (1, 2) partition by list (id); create table @_1 partition of @ for values in (1); create table @_2 (id int references @_1 (id)); create view @_v as select * from @_1; insert into @ values (1)',
  other_view_column_type:
    'create table @_t (id int primary key); create view @_v as select id from @_t; create table @ (id int primary key, r @_v, rs @_v[]); insert into @ values (1, row(2))',
  other_matview_column_type:
    'create table @_t (id int primary key); create materialized view @_v as select id from @_t; create table @ (id int primary key, r @_v); insert into @ values (1, row(2))',
  other_table_column_type:
    'create table @_t (id int primary key); create table @ (id int primary key, r @_t, rs @_t[]); insert into @ values (1, row(2))',
  other_composite_view:
    "create table @_t (id int primary key); create view @_v as select id from @_t; create type @ as (v @_v); create domain @_d as @_v; create function @_f(@_v) returns int language sql as 'select 1'; create table @_u (id int primary key, a @, b @_d, n int default @_f(row(1)))",
  other_composite_table:
    'create table @_t (id int primary key); create type @ as (v @_t); create table @_u (id int primary key, a @)',
  other_statistics:
    'create schema @_x; create table @ (id int primary key, c int); create statistics @_x.s on id, c from @; insert into @ values (1)',
  other_statistics_fn:
    "create schema @_x; create function @_x.f(int) returns int language sql immutable as 'select 1'; create table @ (id int primary key, c int); create statistics @ on (@_x.f(id)), c from @; insert into @ values (1)",
  other_operator:
    "create schema @_x; create function @_x.f(int,int) returns boolean language sql immutable as 'select true'; create operator @_x.=== (leftarg=int, rightarg=int, function=@_x.f); create table @ (id int primary key, check (id operator(@_x.===) 1)); create view @_v as select id operator(@_x.===) 1 as b from @",
  other_collation:
    "create schema @_x; create collation @_x.c (locale='C'); create table @ (id int primary key, c text collate @_x.c); create view @_v as select c from @; create index @_i on @ (c)",
  other_ts_config:
    "create schema @_x; create text search configuration @_x.c (copy=simple); create table @ (id int primary key, c text, v tsvector generated always as (to_tsvector('@_x.c', c)) stored); create index @_i on @ using gin (to_tsvector('@_x.c', c)); create view @_v as select to_tsvector('@_x.c', c) from @",
  other_view_trigger:
    'create schema @_x; create table @_x.t (id int primary key); create view @ as select id from @_x.t; create trigger t instead of insert on @ for each row execute function quiet()',
  other_fn_of_view:
    "create schema @_x; create table @_x.t (id int primary key); create view @_v as select id from @_x.t; create function @(@_v) returns int language sql as 'select 1'; create table @_t (id int primary key, check (@(null) = 1), c @_v)",
  other_function_calls:
    "create schema @_x; create function @_x.f() returns int language sql as 'select 1'; create function @() returns int language sql as 'select @_x.f()'; create procedure @_p() language plpgsql as 'begin perform @_x.f(); end'",
  other_comment_index:
    "create schema @_x; create function @_x.f(int) returns int language sql immutable as 'select 1'; create table @ (id int primary key, c int not null); create index @_i on @ (@_x.f(id)); comment on index @_i is 'x'; alter index @_i alter column 1 set statistics 50; alter table @ cluster on @_pkey; insert into @ values (1, 2)",
  other_comment_fk:
    "create schema @_x; create table @_x.d (a int primary key); create table @ (id int primary key, n int); alter table @ add constraint k foreign key (n) references @_x.d (a); comment on constraint k on @ is 'x'; insert into @ values (1)",
  other_comment_check:
    "create schema @_x; create function @_x.f(int) returns boolean language sql immutable as 'select true'; create table @ (id int primary key, constraint k check (@_x.f(id))); comment on constraint k on @ is 'x'; insert into @ values (1)",
  other_foreign_table:
    "create foreign data wrapper @_w; create server @_s foreign data wrapper @_w; create foreign table @ (id int) server @_s; create view @_v as select * from @; create function @_f(@) returns int language sql as 'select 1'; create table @_t (id int primary key, f @, check (@_f(null) = 1))",
  late_check:
    "create table @_t (id int primary key); create view @_v as select id from @_t; create function @_f(@_v) returns int language sql immutable as 'select 1'; create table @ (id int primary key, check (@_f(null) = 1), n int default @_f(null)); create index @_i on @ (@_f(row(id)::@_v)); insert into @ values (1)",
  late_table_check:
    "create table @_t (id int primary key); create function @_f(@_t) returns int language sql immutable as 'select 1'; create table @ (id int primary key, check (@_f(null) = 1), n int default @_f(null)); create index @_i on @ (@_f(row(id)::@_t)); insert into @ values (1)",
  late_atomic:
    'create table @_t (id int primary key); create function @_f() returns bigint language sql begin atomic select count(*) from @_t; end; create table @ (id int primary key, n bigint default @_f()); insert into @ values (1)',
  late_composite:
    'create table @_t (id int primary key); create type @_y as (r @_t); create domain @_d as @_t; create table @ (id int primary key, y @_y, d @_d); insert into @ values (1)',
  other_composite_only:
    "create table @_t (id int primary key); create type @ as (r @_t); create domain @_d as @_t check ((value).id > 0); create function @_f(@) returns @_d language sql as 'select null::@_d'; create view @_v as select @_f(null) as c",
  other_inherited_late:
    "create table @_t (id int primary key); create view @_v as select id from @_t; create function @_f(@_v) returns int language sql immutable as 'select 1'; create type @_y as (v @_v); create table @ (n int default @_f(null), y @_y, check (@_f(null) = 1)) inherits (@_t); insert into @ values (1)",
  other_partition_late:
    "create table @_t (id int primary key); create view @_v as select id from @_t; create function @_f(@_v) returns int language sql immutable as 'select 1'; create table @ (id int, n int) partition by list (id); create table @_1 partition of @ for values in (1); alter table @_1 alter n set default @_f(null); create index @_i on @_1 (@_f(null)); insert into @ values (1)",
  other_row_of_own:
    "create table @_t (id int) partition by list (id); create table @_1 partition of @_t for values in (1); create table @_o (id int); create table @_h (c text) inherits (@_o); insert into @_t values (1); create table @ (id int primary key, a @_1, b @_h, c @_o); insert into @ values (1, row(1), row(1, 'x'), row(1))",
  other_same_names:
    "create schema @_x; create table @_x.t (id int primary key, e text); create table @ (id int primary key, e text); create view @_v as select t.e from @_x.t join @ using (id); create view @_x.@_v as select e from public.@_v; create function @_x.@_f(text) returns text language sql immutable as 'select $1'; create function @_f(text) returns text language sql return @_x.@_f($1); create view @_w as select @_f(e) as e from @",
  other_before_trigger:
    'create table @_t (id int primary key); create view @_v as select id from @_t; create materialized view @_m as select * from @_v; create index @_mi on @_m (id); create table @ (id int primary key); create policy p on @ using (id in (select id from @_m)); create rule r as on update to @ do also select * from @_v; insert into @ values (1)',
};

/** The tables and objects that are not the same where the configuration lists all schemas, as a warning says. */
export const POSTGRESQL_OTHERS_SAID: readonly string[] = [
  'other_foreign_table_f',
  'other_foreign_table_t',
  'other_foreign_table_v',
];

/** The same where only the public schema is read. */
export const POSTGRESQL_UNLISTED_SAID: readonly string[] = [
  ...POSTGRESQL_OTHERS_SAID,
  'other_collation',
  'other_collation_v',
  'other_fn_of_view_t',
  'other_operator',
  'other_operator_v',
  'other_same_names_f',
  'other_same_names_v',
  'other_same_names_w',
  'other_aggregate',
  'other_aggregate_called_v',
  'other_aggregate_v',
  'other_check',
  'other_column_composite',
  'other_column_domain',
  'other_column_enum',
  'other_column_row',
  'other_comment_check',
  'other_comment_fk',
  'other_comment_index',
  'other_computed',
  'other_default',
  'other_default_seq',
  'other_default_seq_key',
  'other_default_seq_text',
  'other_default_type',
  'other_domain_check',
  'other_domain_check_t',
  'other_domain_type',
  'other_domain_type_t',
  'other_exclude',
  'other_fn_of_view',
  'other_fn_of_view_v',
  'other_foreign',
  'other_function_begin',
  'other_function_setof',
  'other_function_setof_v',
  'other_function_type',
  'other_function_type_r',
  'other_index',
  'other_index_part',
  'other_inherited_check',
  'other_inherited_default',
  'other_inherited_fk',
  'other_inherited_type',
  'other_inherits',
  'other_matview',
  'other_partition_default_1',
  'other_partition_fk_1',
  'other_partition_index_1',
  'other_partition_of_other',
  'other_partition_of_other_1',
  'other_partition_of_other_2',
  'other_partition_of_other_v',
  'other_policy',
  'other_policy_table',
  'other_range',
  'other_range_diff',
  'other_range_diff_v',
  'other_range_subtype',
  'other_range_subtype_t',
  'other_rule',
  'other_statistics',
  'other_statistics_fn',
  'other_trigger',
  'other_trigger_when',
  'other_ts_config',
  'other_ts_config_v',
  'other_type_composite',
  'other_type_composite_t',
  'other_view',
  'other_view_chain',
  'other_view_chain_b',
  'other_view_chain_c',
  'other_view_chain_d',
  'other_view_function',
  'other_view_trigger',
  'other_view_type',
];
