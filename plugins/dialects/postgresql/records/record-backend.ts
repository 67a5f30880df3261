import { errorMessage, type SvcError } from '../../../../core/errors.ts';
import type { AnyRecordDefinition, RecordValue } from '../../../../core/records.ts';
import { mappedError } from '../../shared/errors.ts';
import { type RecordBackend, recordTableStatements } from '../../sql/record-store.ts';
import { type RecordGrammar, readRecordColumn } from '../../sql/record-values.ts';
import { type Result, retryTransient, type Session } from '../../sql/session.ts';
import { StatementTemplate } from '../../sql/statement.ts';
import { StatementBatcher } from '../../sql/statement-batcher.ts';
import { grammar } from '../compile/grammar.ts';
import { jsonLiteral } from '../compile/literal.ts';
import { quoteIdentifier } from '../compile/names.ts';
import { codeOf, isTransient, toSvcError } from '../connection/errors.ts';
import { epochIsCurrent } from '../connection/lock.ts';
import { type Notice, notifySql } from './notifications.ts';
import { isPreparedStatementMissing, PreparedStatements } from './prepared-statements.ts';

export const recordGrammar: RecordGrammar = {
  ...grammar,
  // Unlike jsonb, json keeps the order of keys.
  columnType: (field, table) => (field.type === 'json' ? 'json' : grammar.columnType(field, table)),
  literal: (value, field) => (field.type === 'json' ? `${jsonLiteral(value)}::json` : grammar.literal(value, field)),
  // Rows are read as JSON, so a text in a column of JSON is a value.
  read: (value, column) => (column.type === 'json' ? (value as RecordValue) : readRecordColumn(value, column)),
  anyOf: (literals) => `ARRAY[${literals.join(', ')}]`,
  clock: 'clock_timestamp()',
  elapsed:
    "extract(epoch FROM clock_timestamp() - coalesce(nullif(current_setting('svc.started_at', true), '')::timestamptz, transaction_timestamp())) * 1000",
};

/**
 * Every read has a matching index. With outdated statistics, the planner would read and sort the whole table of a
 * collection that was small or new when it was last analyzed.
 */
const PREFER_INDEXES = ['seqscan', 'bitmapscan', 'sort'].map((one) => `SET LOCAL enable_${one} = off`);

/** `lockRetries`: how often a text is sent again after a lock timeout. */
export function createRecordBackend(session: Session, schema: string, lockRetries: number): RecordBackend {
  const batcher = new StatementBatcher<Notice>(
    async (text) => {
      const results = await session.exec([...PREFER_INDEXES, text].join(';\n'));
      return results.slice(PREFER_INDEXES.length);
    },
    (notices) => notifySql(schema, notices),
  );
  let prepared = new PreparedStatements(session.exec);
  const sendOnce = async (template: StatementTemplate, notice?: Notice): Promise<Result | undefined> => {
    const used = prepared;
    try {
      return await batcher.send(await used.text(template), notice);
    } catch (error) {
      if (isPreparedStatementMissing(error) && prepared === used) prepared = new PreparedStatements(session.exec);
      throw error;
    }
  };
  /** By the text of a query with placeholders, which occurs again. */
  const jsonTexts = new Map<string, string>();
  const asJson = ({ text, literals }: StatementTemplate, columns: readonly string[]): string => {
    const known = jsonTexts.get(text);
    if (known !== undefined) return known;
    const all = `json_agg(json_build_array(${columns.map(quoteIdentifier).join(', ')}))`;
    const json = `SELECT ${all} AS found FROM (${text}) AS page`;
    if (literals.length > 0) jsonTexts.set(text, json);
    return json;
  };
  const isRetryable = (error: unknown): boolean => isTransient(error) || isPreparedStatementMissing(error);
  const send = (template: StatementTemplate, notice?: Notice) =>
    retryTransient(() => sendOnce(template, notice), isRetryable, lockRetries);
  return {
    async exec(text) {
      const result = await send(new StatementTemplate(text));
      return result ? [result] : [];
    },
    write: async (statement, notice) => (await send(statement, notice))?.count ?? 0,
    // One JSON value for the page, because the driver needs ten times as long to parse rows.
    async readColumns(query, columns) {
      const result = await send(new StatementTemplate(asJson(query, columns), query.literals));
      return (result?.rows[0]?.found as readonly (readonly unknown[])[] | null | undefined) ?? [];
    },
    grammar: recordGrammar,
    schema,
    isMissing: (error) => codeOf(error) === '42P01',
    isDuplicate: (error) => codeOf(error) === '23505',
    onDuplicate: 'ON CONFLICT DO NOTHING',
    toSvcError: (error) => (codeOf(error) === '42703' ? missingColumn(error) : toSvcError(error)),
    epochIsCurrent: (epoch) => epochIsCurrent(schema, epoch),
  };
}

/** svc writes the statements of records itself: the table lacks a column that it created. */
const missingColumn = (error: unknown): SvcError =>
  mappedError(
    { code: 'field_unknown', message: 'The field does not exist.' },
    { why: `42703: ${errorMessage(error)}`, cause: error },
  );

/** Errors of two sessions that create the same object at once, even with IF NOT EXISTS. */
const CREATE_RACE_CODES: ReadonlySet<string | undefined> = new Set(['23505', '42P07', '42710', '42701']);

export async function ensureTables(
  session: Session,
  schema: string,
  definitions: readonly AnyRecordDefinition[],
): Promise<void> {
  const statements = definitions.flatMap((definition) => recordTableStatements(recordGrammar, schema, definition));
  for (let left = 5; ; left -= 1) {
    try {
      await session.exclusive(async (exec) => {
        try {
          await exec(`BEGIN; ${statements.join('; ')}; COMMIT`);
        } catch (error) {
          await exec('ROLLBACK');
          throw error;
        }
      });
      return;
    } catch (error) {
      if (left === 0 || !CREATE_RACE_CODES.has(codeOf(error))) throw toSvcError(error);
    }
  }
}
