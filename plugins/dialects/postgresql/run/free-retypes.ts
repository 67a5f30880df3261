import type { Statement } from '../../../../core/dialect.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { qualified } from '../compile/names.ts';
import type { PostgresqlStep, Retyped } from '../compile/step.ts';

type Statements = readonly Statement<PostgresqlStep>[];

/** The statements, without what says that they write all rows where the type of a field only gets another name. */
export async function withFreeRetypes(exec: ExecSql, schema: string, statements: Statements): Promise<Statements> {
  const marked: Statement<PostgresqlStep>[] = [];
  for (const statement of statements) {
    const { run } = statement;
    if (run.kind !== 'sql' || run.retypes === undefined || !(await isFree(exec, schema, run.retypes))) {
      marked.push(statement);
      continue;
    }
    const { copies, rewrites, ...rest } = run;
    marked.push({ ...statement, run: rest });
  }
  return marked;
}

/**
 * Whether both types are one below their domains, of which the new ones check nothing, and the server neither checks the rows again
 * nor builds an index on an expression. A row of `was` and `becomes` has a type and its modifier.
 */
async function isFree(exec: ExecSql, schema: string, { table, column, type }: Retyped): Promise<boolean> {
  const below = (name: string): string =>
    `SELECT p.typbasetype, p.typtypmod FROM ${name} n JOIN pg_type p ON p.oid = n.of AND p.typtype = 'd'`;
  const base = (name: string): string =>
    `(SELECT (n.of, n.modifier)::text FROM ${name} n JOIN pg_type p ON p.oid = n.of AND p.typtype <> 'd')`;
  const relation = `to_regclass(${quoteLiteral(qualified(table, schema))})`;
  const [row] = await rowsOf(
    exec,
    `WITH RECURSIVE field AS (SELECT * FROM pg_attribute WHERE attrelid = ${relation} AND attname = ${quoteLiteral(column)}),
was(of, modifier) AS (SELECT atttypid, atttypmod FROM field UNION ALL ${below('was')}),
becomes(of, modifier) AS (SELECT to_regtype(${quoteLiteral(type)})::oid, -1 UNION ALL ${below('becomes')})
SELECT ${base('was')} = ${base('becomes')} AND NOT EXISTS (SELECT FROM becomes n JOIN pg_type p ON p.oid = n.of AND p.typtype = 'd'
  WHERE p.typnotnull OR EXISTS (SELECT FROM pg_constraint k WHERE k.contypid = p.oid))
  AND NOT EXISTS (SELECT FROM field a JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'c' AND a.attnum = ANY (k.conkey))
  AND NOT EXISTS (SELECT FROM field a JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
    JOIN pg_index i ON i.indexrelid = d.objid AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)) AS free`,
  );
  return row?.free === true;
}
