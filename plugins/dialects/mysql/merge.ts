import { SvcError } from '../../../core/errors.ts';
import type { Modify } from './asked.ts';
import type { CatalogColumn, CatalogTable } from './catalog.ts';
import { writtenDefault } from './default.ts';
import { isArrayCheck } from './introspect.ts';
import { withoutOuter } from './parentheses.ts';
import { quote, text } from './quote.ts';
import type { Traits } from './traits.ts';

/** A column's whole definition: what the change says, and everything else as the catalog has it. */
export function mergedColumn(traits: Traits, table: CatalogTable, modify: Modify): string {
  const column = table.columns.find(({ name }) => name === modify.column);
  if (!column) throw new SvcError('field_unknown', `The table "${table.name}" has no field "${modify.column}".`);
  const type = modify.type ?? column.type;
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
    column.generated === '' && !numbered ? defaultOf(column, modify) : '',
    onUpdate(column, type),
    /\binvisible\b/i.test(column.extra) ? 'INVISIBLE' : '',
    column.comment === '' ? '' : `COMMENT ${text(column.comment)}`,
    ownCheck(traits, table, modify),
  ]
    .filter((part) => part !== '')
    .join(' ');
}

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

function defaultOf(column: CatalogColumn, modify: Modify): string {
  if (modify.default !== undefined) return modify.default === null ? '' : `DEFAULT ${modify.default}`;
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
  const [, precision = ''] = /\((\d)\)/.exec(type) ?? [];
  return `ON UPDATE CURRENT_TIMESTAMP${precision === '' ? '' : `(${precision})`}`;
}

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
