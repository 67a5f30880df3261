import type { RemadeCases } from './remade-cases.ts';

/** What is not a table, or of one: types, sequences, views, functions, comments and what is switched off. */
export const POSTGRESQL_OBJECTS: RemadeCases = {
  range_plain: 'create type @ as range (subtype = float8, subtype_diff = float8mi)',
  range_collation: 'create type @ as range (subtype = text, collation = "C")',
  range_class: 'create type @ as range (subtype = text, subtype_opclass = text_pattern_ops)',
  range_column: 'create type @_r as range (subtype = int2); create table @ (id int primary key, r @_r, s @_r[])',
  enum_odd: "create type @ as enum ('', 'it''s', 'a,b', 'ü', '-- x', '$1')",
  enum_empty: 'create type @ as enum ()',
  enum_comment: "create type @ as enum ('a'); comment on type @ is 'x'",
  composite_comment: "create type @ as (a int, b text); comment on column @.b is 'it''s'; comment on type @ is 'all'",
  composite_nested:
    'create type @_a as (m mood, n positive[], c text collate "C"); create type @ as (a @_a, n numeric(10,2)); create table @_t (id int primary key, c @)',
  domain_comment: "create domain @ as int constraint k check (value > 0); comment on constraint k on domain @ is 'x'",
  domain_not_valid:
    'create domain @ as int check (value < 9); alter domain @ add constraint late check (value > 0) not valid',
  domain_of_domain: 'create domain @_a as int check (value > 0); create domain @ as @_a default 3 not null',
  domain_function:
    'create function @_ok(int) returns boolean immutable language sql as $$ select $1 > 1 $$; create domain @ as int check (@_ok(value))',
  sequence_comment: "create sequence @; comment on sequence @ is 'x'",
  sequence_owned_alone: 'create table @ (id int primary key); create sequence @_s owned by @.id',
  sequence_owned_by_text: 'create table @ (id int primary key, c text); create sequence @_s owned by @.c',
  serial_comment: "create table @ (id serial primary key); comment on sequence @_id_seq is 'x'",
  identity_comment:
    "create table @ (id int generated always as identity primary key); comment on sequence @_id_seq is 'x'",
  statistics_target:
    "create table @ (id int primary key, c int); create statistics @_s on id, c from @; alter statistics @_s set statistics 200; comment on statistics @_s is 'x'",
  view_options:
    'create table @_t (id int primary key); create view @ with (security_barrier = true) as select id from @_t where id > 1 with cascaded check option',
  view_chain:
    'create table @_t (id int primary key); create view @_z as select id from @_t; create function @_f() returns setof @_z language sql as $$ select * from @_z $$; create view @ as select * from @_f(); create materialized view @_a as select * from @_z',
  view_trigger:
    'create table @_t (id int primary key); create view @ as select id from @_t; create trigger @_i instead of insert on @ for each row execute function quiet()',
  materialized_comment:
    "create materialized view @ as select 1 as id; create index @_i on @ (id); comment on index @_i is 'x'; comment on column @.id is 'y'; comment on materialized view @ is 'z'",
  materialized_settings:
    "create materialized view @ as select 1 as id, 'a'::text as c; create index @_i on @ (id); alter materialized view @ cluster on @_i; alter materialized view @ alter c set storage external, alter c set statistics 77",
  materialized_options: 'create materialized view @ with (fillfactor = 70) as select 1 as id with no data',
  function_overloaded:
    "create function @(int) returns int language sql as 'select 1'; create function @(text, variadic int[]) returns int language sql as 'select 2'; comment on function @(int) is 'x'",
  function_attributes:
    "create function @(x int default 3, y text default 'it''s') returns table (p int, q text) language sql stable parallel safe cost 7 rows 20 set search_path = pg_catalog as $$ select 1, 'x'::text $$",
  aggregate_plain:
    "create table @ (id int primary key, c int); insert into @ values (1, 2); create aggregate @_a(int) (sfunc = int4_sum, stype = bigint, initcond = '0'); create view @_v as select @_a(c) from @; comment on aggregate @_a(int) is 'x'",
  aggregate_overloaded:
    "create function @(int, int) returns int language sql immutable as 'select 1'; create aggregate @(int) (sfunc = @, stype = int, initcond = '0'); create aggregate @(text) (sfunc = text_larger, stype = text, sortop = >)",
  aggregate_polymorphic:
    "create function @_f(anyarray, anyelement) returns anyarray language sql immutable as 'select $1 || $2'; create aggregate @(anyelement) (sfunc = @_f, stype = anyarray, initcond = '{}'); create view @_v as select @(n) from generate_series(1, 3) n",
  aggregate_internal:
    'create aggregate @(numeric) (sfunc = numeric_avg_accum, stype = internal, sspace = 128, finalfunc = numeric_avg, combinefunc = numeric_avg_combine, serialfunc = numeric_avg_serialize, deserialfunc = numeric_avg_deserialize, msfunc = numeric_avg_accum, minvfunc = numeric_accum_inv, mstype = internal, mfinalfunc = numeric_avg, parallel = safe)',
  aggregate_ordered:
    'create aggregate @(float8 order by anyelement) (sfunc = ordered_set_transition, stype = internal, finalfunc = percentile_disc_final, finalfunc_extra)',
  aggregate_hypothetical:
    'create aggregate @(variadic "any" order by variadic "any") (sfunc = ordered_set_transition_multi, stype = internal, finalfunc = rank_final, finalfunc_extra, hypothetical)',
  function_row:
    'create table @_t (id int primary key, c text); create function @(r @_t) returns text language sql immutable as $$ select r.c $$',
  function_odd_body:
    'create function @() returns text language plpgsql as $fn$ declare x text := $q$a;b$q$; begin /* nested; */ return x; end $fn$',
  check_function_reads:
    'create table @_a (id int primary key); create function @_ok(int) returns boolean language sql stable as $$ select exists (select 1 from @_a where id = $1) $$; create table @ (id int primary key, check (@_ok(id)))',
  trigger_many:
    "create table @ (id int primary key, c text); create trigger a before update of c on @ for each row when (old.c is distinct from new.c) execute function quiet('x'); create trigger b after insert on @ referencing new table as added for each statement execute function quiet(); alter table @ enable always trigger a; alter table @ disable trigger b; comment on trigger b on @ is 'x'",
  rule_comment:
    "create table @ (id int primary key); create rule r as on delete to @ do instead nothing; comment on rule r on @ is 'x'; alter table @ disable rule r",
  policy_roles:
    "create table @ (id int primary key); create policy p on @ as restrictive for insert to pg_monitor with check (id > 1); comment on policy p on @ is 'x'",
  partition_other_names:
    'create table @ (id int primary key, c text) partition by list (id); create table @_1 (id int not null, c text, constraint @_own primary key (id)); create index @_c on only @ (c); create index @_mine on @_1 (c) with (fillfactor = 60); alter table @ attach partition @_1 for values in (1); alter index @_c attach partition @_mine',
  partition_other_order:
    'create table @ (id int, c text) partition by list (id); create table @_1 (c text, id int); alter table @ attach partition @_1 for values in (1)',
  inherit_own_check:
    'create table @_a (id int, constraint @_k check (id > 0)); create table @ (constraint @_k check (id > 0)) inherits (@_a)',
  sequence_unlogged: 'create unlogged sequence @',
  composite_empty: 'create type @ as ()',
  default_function_reads:
    'create table @ (id int primary key, n int); create function @_next() returns int language sql as $$ select coalesce(max(n), 0) + 1 from @ $$; alter table @ alter n set default @_next()',
  typed: 'create table @ of pair (primary key (a))',
  granted: 'create table @ (id int primary key); grant select on @ to public',
  granted_function:
    "create function @() returns int language sql as 'select 1'; revoke execute on function @ from public",
};
