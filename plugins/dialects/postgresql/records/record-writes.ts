import { columnOf, type RecordWrite } from '../../../../core/records.ts';
import { VERSION_COLUMN } from '../../sql/record-store.ts';
import { engineFilledColumns, recordLiteral } from '../../sql/record-values.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { quoteIdentifier } from '../compile/names.ts';
import { valueIfEpochCurrent } from '../connection/lock.ts';
import { recordGrammar } from './record-backend.ts';

/**
 * A record write inside a segment. It fails, and its transaction with it, if the version is different (division by
 * zero) or the epoch has ended (NOT NULL of the version). Returns `mark` and the columns that the engine filled in.
 */
export function recordWriteSql(write: RecordWrite, schema: string, epoch: number, mark: string): string {
  const { definition, record, version } = write;
  const table = `${schema}${quoteIdentifier(definition.collection)}`;
  const names = Object.keys(version === undefined ? definition.columns : record);
  const toLiteral = (name: string) => recordLiteral(recordGrammar, record[name], columnOf(definition, name));
  const filled = engineFilledColumns(write);
  if (version === undefined) {
    const values = [...names.map(toLiteral), valueIfEpochCurrent(schema, epoch, '1')].join(', ');
    const insert = `INSERT INTO ${table} (${[...names, VERSION_COLUMN].map(quoteIdentifier).join(', ')}) VALUES (${values})`;
    return filled.length === 0
      ? insert
      : `${insert} RETURNING ${[`${quoteLiteral(mark)} AS svc_write`, ...filled.map(quoteIdentifier)].join(', ')}`;
  }
  const set = names.map((name) => `${quoteIdentifier(name)} = ${toLiteral(name)}`);
  const update = `UPDATE ${table} SET ${set.join(', ')}, ${quoteIdentifier(VERSION_COLUMN)} = ${valueIfEpochCurrent(schema, epoch, String(version + 1))} WHERE ${quoteIdentifier(definition.key)} = ${toLiteral(definition.key)} AND ${quoteIdentifier(VERSION_COLUMN)} = ${version} RETURNING ${[...filled.map(quoteIdentifier), '1'].join(', ')}`;
  const results = [
    `${quoteLiteral(mark)} AS svc_write`,
    ...filled.map((name) => `max(${quoteIdentifier(name)}) AS ${quoteIdentifier(name)}`),
    '1 / count(*) AS svc_one',
  ];
  return `WITH written AS (${update}) SELECT ${results.join(', ')} FROM written`;
}

export function readBackSql(write: RecordWrite, schema: string): string {
  const { definition, record } = write;
  const key = recordLiteral(recordGrammar, record[definition.key], columnOf(definition, definition.key));
  return `SELECT ${engineFilledColumns(write).map(quoteIdentifier).join(', ')} FROM ${schema}${quoteIdentifier(definition.collection)} WHERE ${quoteIdentifier(definition.key)} = ${key}`;
}
