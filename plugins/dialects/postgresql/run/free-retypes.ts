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

/** Whether both types are one below their domains, of which the new ones check nothing. A row of `of` has a type and its modifier. */
async function isFree(exec: ExecSql, schema: string, { table, column, type }: Retyped): Promise<boolean> {
  const below = (name: string): string =>
    `SELECT p.typbasetype, p.typtypmod FROM ${name} n JOIN pg_type p ON p.oid = n.of AND p.typtype = 'd'`;
  const base = (name: string): string =>
    `(SELECT (n.of, n.modifier)::text FROM ${name} n JOIN pg_type p ON p.oid = n.of AND p.typtype <> 'd')`;
  const [row] = await rowsOf(
    exec,
    `WITH RECURSIVE was(of, modifier) AS (SELECT a.atttypid, a.atttypmod FROM pg_attribute a WHERE a.attrelid = to_regclass(${quoteLiteral(qualified(table, schema))})
  AND a.attname = ${quoteLiteral(column)} UNION ALL ${below('was')}),
becomes(of, modifier) AS (SELECT to_regtype(${quoteLiteral(type)})::oid, -1 UNION ALL ${below('becomes')})
SELECT ${base('was')} = ${base('becomes')} AND NOT EXISTS (SELECT FROM becomes n JOIN pg_type p ON p.oid = n.of AND p.typtype = 'd'
  WHERE p.typnotnull OR EXISTS (SELECT FROM pg_constraint k WHERE k.contypid = p.oid)) AS free`,
  );
  return row?.free === true;
}
