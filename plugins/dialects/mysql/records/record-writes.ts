import { columnOf, type RecordWrite } from '../../../../core/records.ts';
import { VERSION_COLUMN } from '../../sql/record-store.ts';
import { engineFilledColumns, type RecordGrammar, recordLiteral } from '../../sql/record-values.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import { ifCurrentEpoch, isCurrentEpoch } from '../connection/lock.ts';

/**
 * A record write inside a packet. An insert fails if the row exists or the epoch has ended; after an update, ROW_COUNT()
 * is 0. Without `epoch`, the epoch is not checked.
 */
export function recordWriteSql(grammar: RecordGrammar, write: RecordWrite, epoch: number | undefined): string {
  const { definition, record, version } = write;
  const table = quoteIdentifier(definition.collection);
  const value = (name: string) => recordLiteral(grammar, record[name], columnOf(definition, name));
  if (version === undefined) {
    const names = Object.keys(definition.columns);
    const values = [...names.map(value), epoch === undefined ? '1' : ifCurrentEpoch(epoch, '1')];
    return `INSERT INTO ${table} (${[...names, VERSION_COLUMN].map(quoteIdentifier).join(', ')}) VALUES (${values.join(', ')})`;
  }
  const set = Object.keys(record)
    .filter((name) => name !== definition.key)
    .map((name) => `${quoteIdentifier(name)} = ${value(name)}`);
  return `UPDATE ${table} SET ${[...set, `${quoteIdentifier(VERSION_COLUMN)} = ${version + 1}`].join(', ')} WHERE ${quoteIdentifier(definition.key)} = ${value(definition.key)} AND ${quoteIdentifier(VERSION_COLUMN)} = ${version}${epoch === undefined ? '' : ` AND ${isCurrentEpoch(epoch)}`}`;
}

/** Reads the columns that the engine filled in: a row with its key for each write of one definition. */
export function readBackSql(grammar: RecordGrammar, writes: readonly RecordWrite[]): string | undefined {
  const [first] = writes;
  if (!first) return undefined;
  const { definition } = first;
  const { key } = definition;
  const keys = writes.map(({ record }) => recordLiteral(grammar, record[key], columnOf(definition, key)));
  const columns = new Set([key, ...writes.flatMap(engineFilledColumns)]);
  return `SELECT ${[...columns].map(quoteIdentifier).join(', ')} FROM ${quoteIdentifier(definition.collection)} WHERE ${quoteIdentifier(key)} IN (${keys.join(', ')})`;
}
