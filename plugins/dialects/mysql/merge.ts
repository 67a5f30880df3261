import { SvcError } from '../../../core/errors.ts';
import type { Modify } from './asked.ts';
import type { CatalogColumn, CatalogTable } from './catalog.ts';
import { writtenDefault } from './default.ts';
import { isArrayCheck } from './introspect.ts';
import { withoutOuter } from './parentheses.ts';
import { quote, text } from './quote.ts';
import type { Traits } from './traits.ts';
import { readType } from './types.ts';

/** A column's whole definition: what the change says, and everything else as the catalog has it. */
export function mergedColumn(traits: Traits, table: CatalogTable, modify: Modify): string {
  const column = table.columns.find(({ name }) => name === modify.column);
  if (!column) throw new SvcError('field_unknown', `The table "${table.name}" has no field "${modify.column}".`);
  const type = modify.type === undefined ? column.type : resized(column, modify.type);
  const numbered = modify.numbered ?? /\bauto_increment\b/i.test(column.extra);
  return [
    quote(column.name),
    type,
    modify.type === undefined ? column.spatial : '',
    collationOf(column, table, modify),
    column.generated === ''
      ? ''
      : `GENERATED ALWAYS AS (${column.generated}) ${/\bstored\b/i.test(column.extra) ? 'STORED' : 'VIRTUAL'}`,
    nullable(traits, column, modify),
    numbered ? 'AUTO_INCREMENT' : '',
    column.generated === '' && !numbered ? defaultOf(column, modify, type) : '',
    onUpdate(column, type),
    /\binvisible\b/i.test(column.extra) ? 'INVISIBLE' : '',
    column.comment === '' ? '' : `COMMENT ${text(column.comment)}`,
    ownCheck(traits, table, modify),
  ]
    .filter((part) => part !== '')
    .join(' ');
}

/** What has only another size stays UNSIGNED or ZEROFILL, CHAR or BINARY. */
function resized({ type: was, charset }: CatalogColumn, type: string): string {
  const [, kind = '', size = ''] = SIZED.exec(type) ?? [];
  const [, kindBefore = '', sizeBefore = ''] = SIZED.exec(was) ?? [];
  const kept = kind !== '' && kind === kindBefore && readType(was, charset).type === readType(type, null).type;
  // No CHAR and no BINARY is longer.
  if (!kept || (!was.startsWith('var') && kind !== 'decimal' && Number(size.slice(1, -1)) > 255)) return type;
  return was.replace(sizeBefore, size);
}

const SIZED = /^(?:var)?(char|binary|decimal)(\([\d,]+\))/;

/** A text that stays a text keeps its collation; without a word for it it would get the table's. */
function collationOf({ charset, collation }: CatalogColumn, table: CatalogTable, { type }: Modify): string {
  if (charset === null || collation === null || collation === table.collation) return '';
  if (type !== undefined && (!/^(var)?char|text$|^enum/.test(type) || /character set/i.test(type))) return '';
  return `CHARACTER SET ${charset} COLLATE ${collation}`;
}

/** MariaDB takes no NULL behind what a column is computed from. */
function nullable({ ownsColumnChecks }: Traits, column: CatalogColumn, { required = column.required }: Modify): string {
  if (column.generated !== '' && ownsColumnChecks) return '';
  return required ? 'NOT NULL' : 'NULL';
}

function defaultOf(column: CatalogColumn, modify: Modify, type: string): string {
  if (modify.default === null) return '';
  if (modify.default !== undefined)
    return `DEFAULT ${/^CURRENT_TIMESTAMP\(\d\)$/.test(modify.default) ? clockOf(type) : modify.default}`;
  const found = column.default;
  if (!found) return '';
  if ('literal' in found && /^(var)?binary|blob$|^bit/.test(column.type)) {
    throw new SvcError('not_supported', `The default of "${column.name}" would not survive the change.`, {
      why: 'The catalog tells a binary default only up to its first zero byte, and a change has to write it again.',
      next: ['Change the field with a raw statement that has its whole definition.'],
    });
  }
  // '0123' is a text that only looks like a number.
  const written = 'literal' in found && column.charset !== null ? text(found.literal) : writtenDefault(found);
  return `DEFAULT ${'literal' in found && /(text|blob|json)$/.test(modify.type ?? '') ? `(${written})` : written}`;
}

function onUpdate({ extra }: CatalogColumn, type: string): string {
  const [, clock] = /on update (\w+(?:\(\d?\))?)/i.exec(extra) ?? [];
  if (clock === undefined || !/^(datetime|timestamp)/.test(type)) return '';
  return `ON UPDATE ${clockOf(type)}`;
}

/** The server takes no clock of another precision than the column's, or cuts it. */
const clockOf = (type: string): string => `CURRENT_TIMESTAMP${/\(\d\)/.exec(type)?.[0] ?? ''}`;

/** The check in a column's definition: that of a new type stands in place of that of the old one. */
function ownCheck(traits: Traits, { checks }: CatalogTable, { column, type, check }: Modify): string {
  if (!traits.ownsColumnChecks) return '';
  const [own] = checks.filter((one) => one.own && one.name === column);
  if (check !== undefined && check !== '') return check;
  if (!own) return '';
  const typeOnly =
    isArrayCheck(traits, own.expression, column) || withoutOuter(own.expression) === `json_valid(${quote(column)})`;
  return type !== undefined && typeOnly ? '' : `CHECK (${own.expression})`;
}
