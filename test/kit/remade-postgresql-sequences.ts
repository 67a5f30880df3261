import type { RemadeCases } from './remade-cases.ts';

/** Foreign keys to partitions and from and to tables that inherit, and sequences that no type of svc makes. */
export const POSTGRESQL_SEQUENCES: RemadeCases = {
  foreign_to_partition:
    'create table @_t (id int primary key, c int) partition by list (id); create table @_1 partition of @_t for values in (1); create table @_2 partition of @_t default; insert into @_t values (1, 1), (2, 2); create table @ (id int primary key, p int references @_1 (id) on delete cascade); insert into @ values (1, 1)',
  foreign_to_partition_comment:
    "create table @_t (id int primary key, c int) partition by list (id); create table @_1 partition of @_t for values in (1); create table @_2 partition of @_t default; insert into @_t values (1, 1), (2, 2); create table @ (id int primary key, p int, constraint @_k foreign key (p) references @_1 (id)); comment on constraint @_k on @ is 'x'; insert into @ values (1, 1)",
  foreign_to_partition_not_valid:
    'create table @_t (id int primary key, c int) partition by list (id); create table @_1 partition of @_t for values in (1); create table @_2 partition of @_t default; insert into @_t values (1, 1), (2, 2); create table @ (id int primary key, p int); insert into @ values (1, 7); alter table @ add constraint @_k foreign key (p) references @_1 (id) deferrable initially deferred not valid',
  foreign_to_partition_own_unique:
    'create table @_t (id int, c int) partition by list (id); create table @_1 partition of @_t for values in (1); create unique index @_u on @_1 (c); create table @ (id int primary key, p int references @_1 (c)); insert into @_t values (1, 1); insert into @ values (1, 1)',
  foreign_to_partition_both:
    'create table @_t (id int primary key, c int) partition by list (id); create table @_1 partition of @_t for values in (1); create table @_2 partition of @_t default; insert into @_t values (1, 1), (2, 2); alter table @_t add unique (id, c); create table @ (id int primary key, p int references @_t (id), q int references @_2 (id), r int, foreign key (p, r) references @_1 (id, c)); insert into @ values (1, 1, 2)',
  foreign_to_partition_to_partition:
    'create table @_t (id int primary key, c int) partition by list (id); create table @_1 partition of @_t for values in (1); create table @_2 partition of @_t default; insert into @_t values (1, 1), (2, 2); alter table @_1 add foreign key (c) references @_2 (id) not valid; create table @ (id int primary key)',
  foreign_to_partition_self:
    'create table @_t (id int primary key, c int) partition by list (id); create table @_1 partition of @_t for values in (1); create table @_2 partition of @_t default; insert into @_t values (1, 1), (2, 2); alter table @_1 add constraint @_k foreign key (c) references @_1 (id); create table @ (id int primary key)',
  foreign_to_partition_set_columns:
    'create table @_t (id int primary key, c int) partition by list (id); create table @_1 partition of @_t for values in (1); create table @_2 partition of @_t default; insert into @_t values (1, 1), (2, 2); create table @ (id int primary key, p int, q int, foreign key (p) references @_1 (id) on delete set null (p))',
  foreign_to_partition_circle:
    'create table @_t (id int primary key, c int) partition by list (id); create table @_1 partition of @_t for values in (1); create table @_2 partition of @_t default; insert into @_t values (1, 1), (2, 2); create table @ (id int primary key, p int references @_1 (id)); insert into @ values (1, 1), (2, 1); alter table @_1 add foreign key (c) references @ (id)',
  foreign_to_parted_to_partition:
    'create table @_t (id int primary key, c int) partition by list (id); create table @_1 partition of @_t for values in (1); create table @_2 partition of @_t default; insert into @_t values (1, 1), (2, 2); create table @ (id int, p int references @_1 (id)) partition by list (id); create table @_p1 partition of @ for values in (1); insert into @ values (1, 1)',
  foreign_to_inherited:
    'create table @_a (id int primary key, c int); create table @_b (extra int unique, primary key (id)) inherits (@_a); insert into @_b values (1, 1, 1); create table @ (id int primary key, p int references @_b (id), q int references @_b (extra) on update cascade); insert into @ values (1, 1, 1)',
  foreign_to_inherited_parent:
    'create table @_a (id int primary key, c int); create table @_b (extra int unique, primary key (id)) inherits (@_a); insert into @_b values (1, 1, 1); insert into @_a values (5, 5); create table @ (id int primary key, p int references @_a (id)); insert into @ values (1, 5)',
  foreign_from_inherited:
    'create table @_a (id int primary key, c int); create table @_b (extra int unique, primary key (id)) inherits (@_a); insert into @_b values (1, 1, 1); create table @ (p int references @_b (id)) inherits (@_a); insert into @ values (1, 1, 1)',
  foreign_to_inherited_circle:
    'create table @_a (id int primary key, c int); create table @_b (extra int unique, primary key (id)) inherits (@_a); insert into @_b values (1, 1, 1); create table @ (id int primary key, p int references @_b (id)); insert into @ values (1, 1); alter table @_b add foreign key (c) references @ (id)',
  foreign_to_inherited_self:
    'create table @_a (id int primary key, c int); create table @_b (extra int unique, primary key (id)) inherits (@_a); insert into @_b values (1, 1, 1); alter table @_b add constraint @_k foreign key (extra) references @_b (id); create table @ (id int primary key)',
  foreign_to_inherited_two:
    'create table @_a (id int primary key, c int); create table @_b (extra int unique, primary key (id)) inherits (@_a); insert into @_b values (1, 1, 1); create table @_c (c2 int references @_b (id), unique (id)) inherits (@_a); alter table @_b add foreign key (c) references @_c (id) not valid; create table @ (id int primary key)',
  foreign_to_two_same_name:
    'create table @_t (id int primary key, c int) partition by list (id); create table @_1 partition of @_t for values in (1); create table @_2 partition of @_t default; insert into @_t values (1, 1), (2, 2); create table @ (id int primary key, p int, q int, constraint @_k foreign key (p) references @_1 (id), constraint @_l foreign key (p) references @_1 (id) on delete set null)',
  sequenced_shared:
    "create sequence @_s start 10; create table @ (id int primary key default nextval('@_s')); create table @_o (id int primary key default nextval('@_s')); insert into @ default values; insert into @_o default values",
  sequenced_shared_owned:
    "create table @ (id serial primary key); create table @_o (id int primary key default nextval('@_id_seq')); insert into @ default values; insert into @_o default values",
  sequenced_unowned:
    "create sequence @_s; create table @ (id int primary key default nextval('@_s')); insert into @ default values",
  sequenced_unowned_bigint:
    "create sequence @_s; create table @ (id bigint primary key default nextval('@_s')); insert into @ default values",
  sequenced_unowned_usual_name:
    "create sequence @_id_seq; create table @ (id bigint primary key default nextval('@_id_seq')); insert into @ default values",
  sequenced_unowned_not_key:
    "create sequence @_s; create table @ (id int primary key, n int not null default nextval('@_s')); insert into @ values (1)",
  sequenced_owned_other_column:
    "create sequence @_s; create table @ (id int primary key default nextval('@_s'), n int); alter sequence @_s owned by @.n; insert into @ default values",
  sequenced_owned_other_table:
    "create sequence @_s; create table @_o (id int primary key); create table @ (id int primary key default nextval('@_s')); alter sequence @_s owned by @_o.id; insert into @ default values",
  sequenced_owned_swapped:
    "create sequence @_s; create sequence @_r; create table @ (a int not null default nextval('@_s'), b int not null default nextval('@_r')); alter sequence @_s owned by @.b; alter sequence @_r owned by @.a; insert into @ default values",
  sequenced_descending:
    "create sequence @_s increment -1; create table @ (id int primary key default nextval('@_s')); alter sequence @_s owned by @.id; insert into @ default values",
  sequenced_cycle:
    "create sequence @_s maxvalue 9 cycle cache 5; create table @ (id int primary key default nextval('@_s')); alter sequence @_s owned by @.id; insert into @ default values",
  sequenced_cache_serial:
    'create table @ (id serial primary key); alter sequence @_id_seq cache 20; insert into @ default values',
  sequenced_increment_serial:
    'create table @ (id bigserial primary key, c text); alter sequence @_id_seq increment 5 start 100 restart; insert into @ default values',
  sequenced_renamed_column:
    'create table @ (old serial primary key); alter table @ rename old to id; insert into @ default values',
  sequenced_renamed_sequence:
    'create table @ (id serial primary key); alter sequence @_id_seq rename to @_zz; insert into @ default values',
  sequenced_serial_type:
    'create table @ (id serial primary key); alter table @ alter id type bigint; insert into @ default values',
  sequenced_two_for_one:
    'create table @ (id serial primary key); create sequence @_s owned by @.id; insert into @ default values',
  sequenced_default_both:
    "create table @ (id serial primary key, n int default currval('@_id_seq'), m int default nextval('@_id_seq')); insert into @ default values",
  sequenced_quoted:
    'create sequence "@ S"; create table @ (id int primary key default nextval(\'"@ S"\')); insert into @ default values',
  sequenced_comment_owned:
    "create sequence @_s; comment on sequence @_s is 'x'; create table @ (id int primary key default nextval('@_s')); alter sequence @_s owned by @.id; insert into @ default values",
  sequenced_nullable:
    "create sequence @_s; create table @ (id int primary key, n bigint default nextval('@_s')); alter sequence @_s owned by @.n; insert into @ values (1)",
  sequenced_partition:
    "create sequence @_s; create table @ (id int not null default nextval('@_s'), k int) partition by list (k); create table @_1 partition of @ for values in (1); alter sequence @_s owned by @.id; insert into @ (k) values (1)",
  sequenced_partition_own:
    "create table @ (id bigserial, k int) partition by list (k); create table @_1 partition of @ for values in (1); create sequence @_s; alter table @_1 alter id set default nextval('@_s'); alter sequence @_s owned by @_1.id; insert into @ (k) values (1)",
  sequenced_partition_shared_with_table:
    "create table @ (id bigserial, k int) partition by list (k); create table @_1 partition of @ for values in (1); create table @_o (id int primary key default nextval('@_id_seq')); insert into @ (k) values (1)",
  sequenced_inherited:
    "create table @_a (id serial primary key); create table @ () inherits (@_a); create sequence @_s increment -1; alter table @ alter id set default nextval('@_s'); alter sequence @_s owned by @.id; insert into @ default values",
  sequenced_inherited_local:
    "create table @_a (c int); create sequence @_s; create table @ (id int not null default nextval('@_s')) inherits (@_a); insert into @ values (1)",
  sequenced_inherited_serial_options:
    'create table @_a (c int); create table @ (id serial, n int generated always as identity (start 7)) inherits (@_a); alter sequence @_id_seq increment 3; insert into @ values (1)',
  sequenced_check:
    "create sequence @_s; create table @ (id int primary key default nextval('@_s'), check (id < 100)); alter sequence @_s owned by @.id; create view @_v as select last_value from @_s; insert into @ default values",
};
