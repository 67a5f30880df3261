import type { UnsupportedObject } from '../../../../core/dialect.ts';
import { shownKey } from './shown-tables.ts';

const OPTIONS =
  /\b(TABLESPACE `\w+`|AUTOEXTEND_SIZE=\d+|SECONDARY_ENGINE=\w+|INSERT_METHOD=\w+|UNION=\([^)]*\)|DATA DIRECTORY=|INDEX DIRECTORY=|CONNECTION=)/g;

/** What of a table only SHOW CREATE TABLE has, which has a line for each field, index and constraint, and then the options. */
export function unmodelledIn(collection: string, shown: string): UnsupportedObject[] {
  const lines = shown.replace(/'(?:[^'\\]|\\.|'')*'/gs, "''").split('\n');
  const end = lines.findLastIndex((line) => line.startsWith(')'));
  const says = (what: string): UnsupportedObject => ({ collection, what: `${what}, which svc does not set` });
  return lines.flatMap((line, at): UnsupportedObject[] => {
    if (at >= end) return at < 1 ? [] : [...line.matchAll(OPTIONS)].map(([option]) => says(`has the option ${option}`));
    const name = /^ {2}`((?:[^`]|``)*)`/.exec(line)?.[1]?.replaceAll('``', '`');
    if (name !== undefined) {
      const attributes = line.match(/\b(?:STORAGE (?:DISK|MEMORY)|COLUMN_FORMAT \w+|NOT SECONDARY)\b/g) ?? [];
      return attributes.map((attribute) => ({ ...says(`has the attribute ${attribute}`), field: name }));
    }
    const period = /^ {2}PERIOD FOR `((?:[^`]|``)*)`/.exec(line)?.[1];
    return period === undefined ? [] : [says(`has the period ${period}`)];
  });
}

/** What `withShownStorage` adds to a model, for one without it. */
export function unmodelledStorage(collection: string, shown: string): UnsupportedObject[] {
  return shown.split('\n').flatMap((line) => {
    const { name = '', storage = [] } = shownKey(line) ?? {};
    // It is what an index of any other engine is.
    const listed = storage.filter((option) => option !== 'USING BTREE' || /\bENGINE=MEMORY\b/.test(shown));
    return listed.map((option) => ({
      collection,
      what: `has the index ${name} ${option.replaceAll('`', '')}, which svc does not set`,
    }));
  });
}
