import type { UpdateJob, UpdateResult } from '../../../core/dialect.ts';
import type { RecordColumn, RecordValue } from '../../../core/records.ts';
import { leaseTable } from '../shared/lease.ts';
import type { RecordBackend } from './record-store.ts';
import { type RecordGrammar, readRecordColumn } from './record-values.ts';
import { type ExecSql, rowsOf } from './session.ts';
import { literal, quoteIdentifier, quoteLiteral, type TextCatalogSyntax, typeText } from './text-catalog/syntax.ts';
import { type UpdateSyntax, updateParts } from './update-sql.ts';

/** The words for types and values. */
type ValueSyntax = Pick<
  TextCatalogSyntax,
  'types' | 'typeText' | 'quoteLiteral' | 'arrayLiteral' | 'now' | 'currentTimestamp'
>;

/** How records are stored with statements of standard SQL. */
export function recordBackend(
  grammar: RecordGrammar,
  driver: Pick<RecordBackend, 'isMissing' | 'isDuplicate' | 'toSvcError'>,
  exec: ExecSql,
): RecordBackend {
  const { isMissing, isDuplicate, toSvcError } = driver;
  return {
    exec,
    // By position, because some servers return the names of columns in lower case.
    readColumns: async (query) => (await rowsOf(exec, query.render())).map((row) => Object.values(row)),
    grammar,
    schema: '',
    isMissing,
    isDuplicate,
    toSvcError,
    epochIsCurrent: (epoch) =>
      `EXISTS (SELECT 1 FROM ${quoteIdentifier(leaseTable.collection)} WHERE ${quoteIdentifier('epoch')} = ${epoch})`,
    write: async (statement) => (await exec(statement.render())).at(-1)?.count ?? 0,
  };
}

/** Runs an update in two statements. */
export async function runUpdate(grammar: SyntaxGrammar, exec: ExecSql, job: UpdateJob): Promise<UpdateResult> {
  const table = grammar.quoteIdentifier(job.table);
  const { matching, changing, assignments } = updateParts(job, grammar);
  const [row] = await rowsOf(exec, `SELECT count(*) AS svc_count FROM ${table} WHERE ${matching}`);
  const results = await exec(`UPDATE ${table} SET ${assignments} WHERE ${changing}`);
  const modified = results.at(-1)?.count ?? 0;
  // Other sessions may have written between the two statements.
  return { matched: Math.max(Number(Object.values(row ?? {})[0]), modified), modified };
}

export type SyntaxGrammar = RecordGrammar & UpdateSyntax;

/** The grammar of records and updates. `elapsed` is set for each write. */
export function syntaxGrammar(syntax: ValueSyntax): SyntaxGrammar {
  const { currentTimestamp } = syntax;
  const literalOf: RecordGrammar['literal'] = (value, field) => literal(syntax, value, field);
  return {
    elapsed: '0',
    quoteIdentifier,
    literal: literalOf,
    read: readRecordValue,
    clock: currentTimestamp,
    columnType: (field) => typeText(syntax, field),
    typedLiteral: literalOf,
    now: ({ type }) => `(${syntax.now[type] ?? currentTimestamp})`,
    concat: (parts) =>
      `concat('', ${parts.map((part) => ('field' in part ? quoteIdentifier(part.field.name) : quoteLiteral(part.literal))).join(', ')})`,
  };
}

function readRecordValue(value: unknown, column: RecordColumn): RecordValue {
  if (value === null || value === undefined) return null;
  if (column.type === 'json') return JSON.parse(String(value)) as RecordValue;
  return column.type === 'boolean' ? Number(value) !== 0 : readRecordColumn(value, column);
}

/** Drivers return a bigint for every integer, or for none. */
export const withExactNumbers = (row: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, exactNumber(value)]));

/** A bigint as a number, if the number is exact. */
const exactNumber = (value: unknown): unknown =>
  typeof value === 'bigint' && BigInt(Number(value)) === value ? Number(value) : value;
