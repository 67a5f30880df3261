import type { Statement } from '../../../core/dialect.ts';
import type { Collection, Field } from '../../../core/schema/model.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { derivedConstraints, primaryKeyName } from '../../sql/names.ts';
import { block, guarded, relation } from './block.ts';
import { FIELD_SHARED } from './errors.ts';

/**
 * The drop of a field, refused as it runs where an index or a constraint has it beside other fields: the server would
 * drop that too and say nothing. The model knows of none, or it would have refused; a catalog may have what no model
 * can say, as partial indexes, and a check may name more fields than its "columns" do.
 */
export function unlessShared(grammar: Grammar, { name: table }: Collection, field: Field, drop: Statement): Statement {
  const { quote, text } = grammar;
  const own = [
    ...derivedConstraints(grammar, field).map(({ name }) => name(table, field.name)),
    ...(field.primaryKey ? [primaryKeyName(table)] : []),
  ];
  const others = own.length === 0 ? '' : `WHERE v.name NOT IN (${own.map(text).join(', ')})`;
  const guard = block(
    `DECLARE shared record; BEGIN SELECT string_agg(v.kind || ' ' || quote_ident(v.name), ', ' ORDER BY v.kind, v.name) AS what, string_agg(v.remedy, '; ' ORDER BY v.kind, v.name) AS remedy INTO shared FROM (
      SELECT DISTINCT CASE WHEN k.oid IS NULL THEN 'the index' ELSE 'the constraint' END AS kind, COALESCE(k.conname, i.relname) AS name,
        CASE WHEN k.oid IS NULL THEN 'DROP INDEX ' || i.oid::regclass ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', d.refobjid::regclass, k.conname) END AS remedy
      FROM pg_attribute a JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype = 'a'
      JOIN pg_depend o ON o.classid = d.classid AND o.objid = d.objid AND o.refclassid = d.refclassid AND o.refobjid = d.refobjid AND o.refobjsubid NOT IN (0, a.attnum)
      LEFT JOIN pg_constraint k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid
      LEFT JOIN pg_class i ON d.classid = 'pg_class'::regclass AND i.oid = d.objid AND i.relkind IN ('i', 'I')
      WHERE a.attrelid = ${relation(quote(table))} AND a.attname = ${text(field.name)} AND COALESCE(k.oid, i.oid) IS NOT NULL) v ${others};
    IF shared.what IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = ${text(FIELD_SHARED)}, MESSAGE = format('%I of %I is used, beside other fields, by %s: the migrations do not know that.', ${text(field.name)}::text, ${text(table)}::text, shared.what), HINT = shared.remedy; END IF; END`,
  );
  return guarded(guard, drop);
}
