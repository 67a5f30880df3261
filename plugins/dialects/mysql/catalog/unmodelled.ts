import type { UnsupportedObject } from '../../../../core/dialect.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/literal.ts';

/** Texts in one round trip. */
const BATCH = 100;

/** What only SHOW CREATE TABLE has: neither a model nor the catalog says it. */
export async function readUnmodelled(exec: ExecSql): Promise<UnsupportedObject[]> {
  const rows = await rowsOf(
    exec,
    "SELECT table_name AS t FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' AND table_name NOT LIKE '\\_svc\\_%' ORDER BY table_name",
  );
  const tables = rows.map(({ t }) => String(t));
  const found: UnsupportedObject[] = [];
  for (let at = 0; at < tables.length; at += BATCH) {
    const batch = tables.slice(at, at + BATCH);
    const results = await exec(batch.map((table) => `SHOW CREATE TABLE ${quoteIdentifier(table)}`).join(';\n'));
    for (const [index, { rows: shown }] of results.entries())
      found.push(...unmodelledIn(batch[index] ?? '', String(shown[0]?.['Create Table'] ?? '')));
  }
  return found;
}

const OPTIONS =
  /\b(TABLESPACE `\w+`|AUTOEXTEND_SIZE=\d+|SECONDARY_ENGINE=\w+|INSERT_METHOD=\w+|UNION=\([^)]*\)|DATA DIRECTORY=|INDEX DIRECTORY=|CONNECTION=)/g;

/** `shown` has a line for each field, index and constraint, and then the options. */
function unmodelledIn(collection: string, shown: string): UnsupportedObject[] {
  const lines = shown.replace(/'(?:[^'\\]|\\.|'')*'/gs, "''").split('\n');
  const end = lines.findLastIndex((line) => line.startsWith(')'));
  const isMemory = /\bENGINE=MEMORY\b/.test(lines.slice(end).join(' '));
  return lines.flatMap((line, at): UnsupportedObject[] => {
    const says = (what: string): UnsupportedObject => ({ collection, what: `${what}, which svc does not set` });
    if (at >= end) return at < 1 ? [] : [...line.matchAll(OPTIONS)].map(([option]) => says(`has the option ${option}`));
    const name = /^ {2}(?:(?:UNIQUE |FULLTEXT |SPATIAL )?KEY )?`((?:[^`]|``)*)`/.exec(line)?.[1]?.replaceAll('``', '`');
    if (/^ {2}`/.test(line)) {
      const attributes = line.match(/\b(?:STORAGE (?:DISK|MEMORY)|COLUMN_FORMAT \w+|NOT SECONDARY)\b/g) ?? [];
      return attributes.map((attribute) => ({ ...says(`has the attribute ${attribute}`), field: name ?? '' }));
    }
    const period = /^ {2}PERIOD FOR `((?:[^`]|``)*)`/.exec(line)?.[1];
    if (period !== undefined) return [says(`has the period ${period}`)];
    if (/^ {2}PRIMARY KEY .* DESC\b/.test(line)) return [says('has a primary key in descending order')];
    const options = line.match(/\b(?:WITH PARSER `?\w+|KEY_BLOCK_SIZE=\d+|USING HASH|USING BTREE)/g) ?? [];
    // It is what an index of any other engine is.
    const listed = options.filter((option) => option !== 'USING BTREE' || isMemory);
    return name === undefined ? [] : listed.map((option) => says(`has the index ${name} ${option.replace('`', '')}`));
  });
}
