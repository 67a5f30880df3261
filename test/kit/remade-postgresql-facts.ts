/** SQL for the name of something, with its schema unless that is the public one. */
const named = (schema: string, name: string): string =>
  `case ${schema} when 'public'::regnamespace then '' else ${schema}::regnamespace || '.' end || ${name}`;

/** All that the catalog knows of each table and object of these schemas. */
export const postgresqlFacts = (schemas: readonly string[]): string => `
with spaces as (select oid from pg_namespace where nspname in (${schemas.map((schema) => `'${schema}'`).join(', ')}))
select ${named('r.relnamespace', 'r.relname')} as t, f.fact from (
  select c.oid, c.relnamespace, c.relname, c.relkind, c.relpersistence, c.reloptions, c.relrowsecurity, c.relforcerowsecurity, c.relreplident, c.reltoastrelid, c.relpartbound, c.relacl, c.reloftype
  from pg_class c where c.relnamespace in (select oid from spaces) and c.relkind in ('r', 'p', 'v', 'm') and c.relname !~ '^_svc_') r
cross join lateral (
  select concat_ws(' ', 'table', r.relkind, r.relpersistence, (select array_agg(o order by o) from unnest(r.reloptions) o)::text, (select reloptions::text from pg_class where oid = r.reltoastrelid),
    r.relrowsecurity, r.relforcerowsecurity, r.relreplident, pg_get_expr(r.relpartbound, r.oid),
    case r.relkind when 'p' then pg_get_partkeydef(r.oid) end, r.relacl, nullif(r.reloftype, 0)::regtype, obj_description(r.oid, 'pg_class')) as fact
  union all select concat_ws(' ', 'column', row_number() over (order by a.attnum), a.attname, format_type(a.atttypid, a.atttypmod), a.attndims > 1, a.attnotnull, 'default', pg_get_expr(d.adbin, d.adrelid),
    'identity', a.attidentity, a.attgenerated, (select collname from pg_collation where oid = a.attcollation), a.attstorage, to_jsonb(a) ->> 'attcompression', a.attacl,
    nullif(a.attstattarget, -1), a.attislocal, a.attinhcount, (select string_agg(o, ',') from unnest(a.attoptions) o where o like 'n\\_d%'), col_description(r.oid, a.attnum),
    (select string_agg(concat_ws(' ', 'sequence', s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmax, s.seqmin, s.seqcache, s.seqcycle), ',' order by s.seqrelid::regclass::text)
      from pg_depend p join pg_sequence s on s.seqrelid = p.objid where p.refobjid = r.oid and p.refobjsubid = a.attnum and p.deptype in ('a', 'i') and p.classid = 'pg_class'::regclass))
    from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum where a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
  union all select concat_ws(' ', 'constraint', k.conname, pg_get_constraintdef(k.oid), k.conislocal, k.coninhcount, obj_description(k.oid, 'pg_constraint')) from pg_constraint k where k.conrelid = r.oid and k.contype <> 'n'
    and not (k.contype = 'f' and k.conparentid <> 0)
  union all select concat_ws(' ', 'index', pg_get_indexdef(i.indexrelid), i.indisclustered, i.indisvalid, obj_description(i.indexrelid, 'pg_class')) from pg_index i where i.indrelid = r.oid
  union all select concat_ws(' ', 'trigger', pg_get_triggerdef(t.oid), t.tgenabled, obj_description(t.oid, 'pg_trigger')) from pg_trigger t where t.tgrelid = r.oid and not t.tgisinternal
  union all select concat_ws(' ', 'rule', pg_get_ruledef(w.oid), w.ev_enabled, obj_description(w.oid, 'pg_rewrite')) from pg_rewrite w where w.ev_class = r.oid
  union all select concat_ws(' ', 'policy', p.polname, p.polcmd, p.polpermissive, pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid), p.polroles::regrole[], obj_description(p.oid, 'pg_policy')) from pg_policy p where p.polrelid = r.oid
  union all select concat_ws(' ', 'statistics', pg_get_statisticsobjdef(x.oid), to_jsonb(x) ->> 'stxstattarget', obj_description(x.oid, 'pg_statistic_ext')) from pg_statistic_ext x where x.stxrelid = r.oid
  union all select concat_ws(' ', 'inherits', i.inhparent::regclass) from pg_inherits i where i.inhrelid = r.oid
) f
union all select ${named('c.relnamespace', 'c.relname')}, concat_ws(' ', 'view', c.relkind, c.reloptions::text, pg_get_viewdef(c.oid), (select string_agg(pg_get_indexdef(i.indexrelid), ';' order by i.indexrelid::regclass::text) from pg_index i where i.indrelid = c.oid))
  from pg_class c where c.relnamespace in (select oid from spaces) and c.relkind in ('v', 'm')
union all select ${named('p.pronamespace', 'p.proname')}, concat_ws(' ', pg_get_functiondef(p.oid), p.proacl, obj_description(p.oid, 'pg_proc')) from pg_proc p where p.pronamespace in (select oid from spaces) and p.prokind in ('f', 'p')
  and not exists (select from pg_depend d where d.objid = p.oid and d.deptype in ('e', 'i'))
union all select ${named('p.pronamespace', 'p.proname')}, concat_ws(' ', 'aggregate', pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.proparallel, p.proacl, obj_description(p.oid, 'pg_proc'), a.aggkind, a.aggnumdirectargs, a.aggtransfn::regprocedure,
    a.aggfinalfn::regprocedure, a.aggcombinefn::regprocedure, a.aggserialfn::regprocedure, a.aggdeserialfn::regprocedure, a.aggmtransfn::regprocedure, a.aggminvtransfn::regprocedure, a.aggmfinalfn::regprocedure, a.aggfinalextra, a.aggmfinalextra,
    a.aggfinalmodify, a.aggmfinalmodify, a.aggsortop::regoperator, a.aggtranstype::regtype, a.aggtransspace, a.aggmtranstype::regtype, a.aggmtransspace, quote_nullable(a.agginitval), quote_nullable(a.aggminitval))
  from pg_proc p join pg_aggregate a on a.aggfnoid = p.oid where p.pronamespace in (select oid from spaces) and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
union all select ${named('t.typnamespace', 't.typname')}, concat_ws(' ', t.typtype, format_type(t.typbasetype, t.typtypmod), t.typnotnull, t.typdefault, (select collname from pg_collation where oid = t.typcollation), t.typacl, obj_description(t.oid, 'pg_type'),
    (select string_agg(e.enumlabel, ',' order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid),
    (select string_agg(concat_ws(' ', pg_get_constraintdef(k.oid), obj_description(k.oid, 'pg_constraint')), ',' order by k.conname) from pg_constraint k where k.contypid = t.oid),
    (select string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation, col_description(t.typrelid, a.attnum)), ',' order by a.attnum) from pg_attribute a where a.attrelid = t.typrelid and not a.attisdropped),
    (select concat_ws(' ', g.rngsubtype::regtype, (select opcname from pg_opclass where oid = g.rngsubopc), g.rngcollation::regcollation, g.rngsubdiff, (to_jsonb(g) ->> 'rngmultitypid')::oid::regtype) from pg_range g where g.rngtypid = t.oid))
  from pg_type t left join pg_class c on c.oid = t.typrelid where t.typnamespace in (select oid from spaces) and (t.typtype in ('e', 'd', 'r') or t.typtype = 'c' and c.relkind = 'c')
  and not exists (select from pg_depend d where d.objid = t.oid and d.deptype = 'e')
union all select x.extname, obj_description(x.oid, 'pg_extension') from pg_extension x where x.extname <> 'plpgsql'
union all select ${named('s.relnamespace', 's.relname')}, concat_ws(' ', 'sequence', s.relpersistence, q.seqtypid::regtype, q.seqstart, q.seqincrement, q.seqmin, q.seqmax, q.seqcache, q.seqcycle, obj_description(s.oid, 'pg_class'), s.relacl,
    (select concat_ws(' ', o.refobjid::regclass, o.refobjsubid) from pg_depend o where o.classid = 'pg_class'::regclass and o.objid = s.oid and o.deptype = 'a'))
  from pg_sequence q join pg_class s on s.oid = q.seqrelid where s.relnamespace in (select oid from spaces) and s.relname !~ '^_svc_'
union all select ${named('o.oprnamespace', 'o.oprname')}, concat_ws(' ', 'operator', o.oprleft::regtype, o.oprright::regtype, o.oprresult::regtype, o.oprcode::regprocedure, o.oprcom::regoperator, o.oprnegate::regoperator, o.oprrest, o.oprjoin,
    o.oprcanhash, o.oprcanmerge, obj_description(o.oid, 'pg_operator'))
  from pg_operator o where o.oprnamespace in (select oid from spaces) and not exists (select from pg_depend d where d.classid = 'pg_operator'::regclass and d.objid = o.oid and d.deptype = 'e')
union all select ${named('l.collnamespace', 'l.collname')}, concat_ws(' ', 'collation', to_jsonb(l) - 'oid' - 'collname' - 'collnamespace' - 'collowner', obj_description(l.oid, 'pg_collation'))
  from pg_collation l where l.collnamespace in (select oid from spaces)
order by 1, 2`;
