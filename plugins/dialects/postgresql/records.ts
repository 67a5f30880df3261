import { createHash } from 'node:crypto';
import { SvcError } from '../../../core/errors.ts';
import {
  type AnyRecordDefinition,
  CLOCK,
  ELAPSED,
  type RecordDefinition,
  type RecordWrite,
} from '../../../core/records.ts';
import { type RecordHome, recordTable, VERSION } from '../../sql/record-store.ts';
import { rowsOf, type Session } from '../../sql/session.ts';
import { type RecordGrammar, readValue, recordValue } from '../../sql/value.ts';
import { epochStands, whileEpochStands } from './epoch.ts';
import { codeOf, refusal } from './errors.ts';
import { grammar, quote } from './grammar.ts';
import { text } from './literal.ts';

export const recordGrammar: RecordGrammar = {
  ...grammar,
  clock: 'clock_timestamp()',
  elapsed:
    "extract(epoch FROM clock_timestamp() - coalesce(nullif(current_setting('svc.began', true), '')::timestamptz, transaction_timestamp())) * 1000",
};

export function recordHome(session: Session, schema: string): RecordHome {
  return {
    exec: session.exec,
    // As one JSON value: the driver takes ten times as long over rows.
    async values(query, columns) {
      const all = `json_agg(json_build_array(${columns.map(quote).join(', ')}))`;
      const [row] = await rowsOf(session.exec, `SELECT ${all} AS found FROM (${query}) AS page`);
      return (row?.found as readonly (readonly unknown[])[] | null | undefined) ?? [];
    },
    grammar: recordGrammar,
    schema,
    isMissing: (error) => codeOf(error) === '42P01',
    isDuplicate: (error) => codeOf(error) === '23505',
    refusal,
    epochStands: (epoch) => epochStands(schema, epoch),
    notify: (collection) => `; SELECT pg_notify(${text(channel(schema, collection))}, '')`,
  };
}

/** A name of at most 63 plain characters, whatever the schema is called. */
export function channel(schema: string, topic: string): string {
  return `svc_${createHash('sha256').update(`${schema}${topic}`).digest('hex').slice(0, 32)}`;
}

/** Codes with which two who create the same thing at once collide, IF NOT EXISTS or not. */
const RACES: ReadonlySet<string | undefined> = new Set(['23505', '42P07', '42710', '42701']);

export async function ensureTables(
  session: Session,
  schema: string,
  definitions: readonly AnyRecordDefinition[],
): Promise<void> {
  const statements = definitions.flatMap((definition) => recordTable(recordGrammar, schema, definition));
  for (let left = 5; ; left -= 1) {
    try {
      await session.alone(async (exec) => {
        try {
          await exec(`BEGIN; ${statements.join('; ')}; COMMIT`);
        } catch (error) {
          await exec('ROLLBACK');
          throw error;
        }
      });
      return;
    } catch (error) {
      if (left === 0 || !RACES.has(codeOf(error))) throw refusal(error);
    }
  }
}

/** Columns that the engine fills in, in the order of the definition. */
export function engineColumns({ record }: RecordWrite): string[] {
  return Object.keys(record).filter((column) => record[column] === CLOCK || record[column] === ELAPSED);
}

/**
 * A record write inside a segment. It fails where the version is another one (division by zero) or the epoch is
 * over (NOT NULL of the version): the transaction then fails with it. Gives what the engine filled in, and `mark`.
 */
export function writeText(write: RecordWrite, schema: string, epoch: number, mark: string): string {
  const { definition, record, version } = write;
  const table = `${schema}${quote(definition.collection)}`;
  const names = Object.keys(definition.columns);
  const say = (name: string) => recordValue(recordGrammar, record[name], columnOf(definition, name));
  const filled = engineColumns(write);
  if (version === undefined) {
    const values = [...names.map(say), whileEpochStands(schema, epoch, '1')].join(', ');
    const insert = `INSERT INTO ${table} (${[...names, VERSION].map(quote).join(', ')}) VALUES (${values})`;
    return filled.length === 0
      ? insert
      : `${insert} RETURNING ${[`${text(mark)} AS svc_write`, ...filled.map(quote)].join(', ')}`;
  }
  const set = names.map((name) => `${quote(name)} = ${say(name)}`);
  const update = `UPDATE ${table} SET ${set.join(', ')}, ${quote(VERSION)} = ${whileEpochStands(schema, epoch, String(version + 1))} WHERE ${quote(definition.key)} = ${say(definition.key)} AND ${quote(VERSION)} = ${version} RETURNING ${[...filled.map(quote), '1'].join(', ')}`;
  const results = [
    `${text(mark)} AS svc_write`,
    ...filled.map((name) => `max(${quote(name)}) AS ${quote(name)}`),
    '1 / count(*) AS svc_one',
  ];
  return `WITH written AS (${update}) SELECT ${results.join(', ')} FROM written`;
}

export function writtenValues(
  write: RecordWrite,
  row: Readonly<Record<string, unknown>>,
): Record<string, Date | number> {
  return Object.fromEntries(
    engineColumns(write).map((name) => [name, readValue(row[name], columnOf(write.definition, name)) as Date | number]),
  );
}

export function readBack(write: RecordWrite, schema: string): string {
  const { definition, record } = write;
  const key = recordValue(recordGrammar, record[definition.key], columnOf(definition, definition.key));
  return `SELECT ${engineColumns(write).map(quote).join(', ')} FROM ${schema}${quote(definition.collection)} WHERE ${quote(definition.key)} = ${key}`;
}

export function writeLost(cause: unknown): SvcError {
  return new SvcError('lock_lost', 'The migration lock was lost: another process has moved on.', {
    why: 'The row to write is not the one that was read under the lock.',
    next: ['Run the command again.'],
    cause,
  });
}

function columnOf(
  definition: RecordDefinition<never> | AnyRecordDefinition,
  name: string,
): AnyRecordDefinition['columns'][string] {
  const column = (definition as AnyRecordDefinition).columns[name];
  if (!column) throw new Error(`${definition.collection} has no column ${name}`);
  return column;
}
