import { columnOf, type RecordWrite } from '../../../core/records.ts';
import { lockLostError } from '../shared/errors.ts';
import { type RecordBackend, VERSION_COLUMN } from './record-store.ts';
import { engineFilledColumns, engineFilledValues, type RecordGrammar, recordLiteral } from './record-values.ts';
import { rowsOf } from './session.ts';

/** The INSERT or UPDATE of a write. It changes no row, or fails as a duplicate, if the record is not as it was read. */
export function recordWriteSql(grammar: RecordGrammar, { definition, record, version }: RecordWrite): string {
  const { quoteIdentifier } = grammar;
  const table = quoteIdentifier(definition.collection);
  const names = Object.keys(version === undefined ? definition.columns : record);
  const valueSql = (name: string) => recordLiteral(grammar, record[name], columnOf(definition, name));
  if (version === undefined)
    return `INSERT INTO ${table} (${[...names, VERSION_COLUMN].map(quoteIdentifier).join(', ')}) VALUES (${[...names.map(valueSql), '1'].join(', ')})`;
  const set = names
    .filter((name) => name !== definition.key)
    .map((name) => `${quoteIdentifier(name)} = ${valueSql(name)}`);
  return `UPDATE ${table} SET ${[...set, `${quoteIdentifier(VERSION_COLUMN)} = ${version + 1}`].join(', ')} WHERE ${quoteIdentifier(definition.key)} = ${valueSql(definition.key)} AND ${quoteIdentifier(VERSION_COLUMN)} = ${version}`;
}

/**
 * Writes a record inside a transaction and returns the values of CLOCK and ELAPSED. Throws `lock_lost` if the record has
 * changed since it was read.
 */
export async function writeRecord(
  { grammar: plain, isDuplicate, exec }: Pick<RecordBackend, 'grammar' | 'isDuplicate' | 'exec'>,
  write: RecordWrite,
  elapsedMs: number,
): Promise<Readonly<Record<string, Date | number>>> {
  const grammar = { ...plain, elapsed: String(elapsedMs) };
  const results = await exec(recordWriteSql(grammar, write)).catch((error: unknown) => {
    throw isDuplicate(error) ? lockLostError(error) : error;
  });
  if ((results.at(-1)?.count ?? 0) === 0) throw lockLostError();
  const filled = engineFilledColumns(write);
  if (filled.length === 0) return {};
  const { quoteIdentifier } = grammar;
  const { collection, key } = write.definition;
  const id = recordLiteral(grammar, write.record[key], columnOf(write.definition, key));
  const [row = {}] = await rowsOf(
    exec,
    `SELECT ${filled.map(quoteIdentifier).join(', ')} FROM ${quoteIdentifier(collection)} WHERE ${quoteIdentifier(key)} = ${id}`,
  );
  // By position, because some servers return the names of columns in lower case.
  const values = Object.values(row);
  return engineFilledValues(grammar, write, Object.fromEntries(filled.map((name, at) => [name, values[at]])));
}
