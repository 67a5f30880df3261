import { createHash } from 'node:crypto';
import type { AnyRecordDefinition, RecordWrite } from '../../../core/records.ts';
import { Group } from '../../sql/group.ts';
import { outwait } from '../../sql/outwait.ts';
import { type RecordHome, recordTable, VERSION } from '../../sql/record-store.ts';
import { columnOf, engineColumns } from '../../sql/record-write.ts';
import type { Exec, Result, Session } from '../../sql/session.ts';
import { Template } from '../../sql/template.ts';
import { type RecordGrammar, readValue, recordValue } from '../../sql/value.ts';
import { epochStands, whileEpochStands } from './epoch.ts';
import { codeOf, isPassing, refusal } from './errors.ts';
import { grammar, quote } from './grammar.ts';
import { text } from './literal.ts';
import { isForgotten, Prepared } from './prepared.ts';

export const recordGrammar: RecordGrammar = {
  ...grammar,
  read: readValue,
  clock: 'clock_timestamp()',
  elapsed:
    "extract(epoch FROM clock_timestamp() - coalesce(nullif(current_setting('svc.began', true), '')::timestamptz, transaction_timestamp())) * 1000",
};

/**
 * Each record is found by its key and each page by an index that has its order. The planner is told so: of a table that
 * was small or not there when it last looked, it would read and sort all rows.
 */
const BY_INDEX = ['seqscan', 'bitmapscan', 'sort'].map((one) => `SET LOCAL enable_${one} = off`);

/** `lockRetries`: times a text is sent again that waited for a lock as long as the session allows. */
export function recordHome(session: Session, schema: string, lockRetries: number): RecordHome {
  const group = new Group(async (text) => {
    const results = await session.exec([...BY_INDEX, text].join(';\n'));
    return results.slice(BY_INDEX.length);
  });
  let prepared = new Prepared(session.exec);
  const once = async (template: Template, more: readonly string[]): Promise<readonly Result[]> => {
    const used = prepared;
    try {
      return await group.send([await used.text(template), ...more]);
    } catch (error) {
      if (isForgotten(error) && prepared === used) prepared = new Prepared(session.exec);
      throw error;
    }
  };
  const again = (error: unknown): boolean => isPassing(error) || isForgotten(error);
  const send = (template: Template, ...more: readonly string[]) =>
    outwait(() => once(template, more), again, lockRetries);
  const exec: Exec = (text) => send(new Template(text));
  return {
    exec,
    async write(statement, told) {
      const notify = told && `NOTIFY ${quote(channel(schema, told.collection))}, ${text(told.key)}`;
      return (await send(statement, ...(notify === undefined ? [] : [notify])))[0]?.count ?? 0;
    },
    // As one JSON value: the driver takes ten times as long over rows.
    async values(query, columns) {
      const all = `json_agg(json_build_array(${columns.map(quote).join(', ')}))`;
      const [result] = await send(query.within(`SELECT ${all} AS found FROM (`, ') AS page'));
      return (result?.rows[0]?.found as readonly (readonly unknown[])[] | null | undefined) ?? [];
    },
    grammar: recordGrammar,
    schema,
    isMissing: (error) => codeOf(error) === '42P01',
    isDuplicate: (error) => codeOf(error) === '23505',
    refusal,
    epochStands: (epoch) => epochStands(schema, epoch),
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

/**
 * A record write inside a segment. It fails where the version is another one (division by zero) or the epoch is
 * over (NOT NULL of the version): the transaction then fails with it. Gives what the engine filled in, and `mark`.
 */
export function writeText(write: RecordWrite, schema: string, epoch: number, mark: string): string {
  const { definition, record, version } = write;
  const table = `${schema}${quote(definition.collection)}`;
  const names = Object.keys(version === undefined ? definition.columns : record);
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

export function readBack(write: RecordWrite, schema: string): string {
  const { definition, record } = write;
  const key = recordValue(recordGrammar, record[definition.key], columnOf(definition, definition.key));
  return `SELECT ${engineColumns(write).map(quote).join(', ')} FROM ${schema}${quote(definition.collection)} WHERE ${quote(definition.key)} = ${key}`;
}
