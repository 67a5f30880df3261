import type { UnsupportedObject } from '../../../../core/dialect.ts';
import { isKey } from '../../../../core/schema/keys.ts';
import type {
  Collection,
  Constraint,
  Default,
  Field,
  Index,
  PrimaryKeyConstraint,
  ReferentialAction,
  SchemaModel,
} from '../../../../core/schema/model.ts';
import { isKeptName, KEPT_PREFIX } from '../../../../core/schema/names.ts';
import { leftOut } from '../../sql/catalog-values.ts';
import { uniqueName } from '../../sql/names.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { isServerUuid } from '../compile/generated-uuid.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import { canonicalTableOptions, VERSIONED } from '../compile/native-options.ts';
import { canonicalType, type ReadType, readType, UUID_COLLATION } from '../compile/types.ts';
import type { Traits } from '../variant.ts';
import {
  type CatalogColumn,
  type CatalogDefault,
  type CatalogForeignKey,
  type CatalogIndex,
  type CatalogTable,
  isAutomaticIndex,
  PRIMARY_KEY,
} from './catalog-table.ts';
import { hasZeroDate, parseDefault } from './defaults.ts';
import { columnsIn, withoutOuterParentheses } from './show-create-table.ts';
import { columnList } from './shown-tables.ts';

export interface Introspection {
  readonly model: SchemaModel;
  readonly unsupported: readonly UnsupportedObject[];
}

interface IntrospectContext {
  readonly traits: Traits;
  /** The collation that a new table gets, which is no option of a table. */
  readonly defaultCollation: string;
  /** With what SHOW CREATE TABLE distinguishes and the normal form does not. */
  readonly asShown: boolean;
}

/** The tables as a model, in normal form unless `asShown`, and the objects that a model cannot describe. */
export function introspectTables(context: IntrospectContext, tables: readonly CatalogTable[]): Introspection {
  const unsupported: UnsupportedObject[] = [];
  const model = new Map(
    tables
      .filter(({ name }) => !isKeptName(name))
      .map((table) => [table.name, collectionOf(context, withoutKept(withoutGeneratedKey(table)), unsupported)]),
  );
  return { model: withoutLooseKeys(model, unsupported), unsupported };
}

/** MariaDB also has foreign keys to fields that are not unique. */
function withoutLooseKeys(model: SchemaModel, unsupported: UnsupportedObject[]): SchemaModel {
  const isLoose = (constraint: Constraint): boolean => {
    if (constraint.type !== 'foreignKey') return false;
    const { table, columns } = constraint.references;
    const target = model.get(table);
    // A user without privileges on the table sees neither its columns nor its keys.
    return target !== undefined && columns.every((name) => target.fields.has(name)) && !isKey(target, columns);
  };
  return new Map(
    [...model].map(([table, collection]) => {
      const loose = [...collection.constraints.values()].filter(isLoose);
      for (const { name } of loose)
        unsupported.push(leftOut(table, 'constraint', name, 'references fields that are not unique'));
      if (loose.length === 0) return [table, collection];
      const constraints = [...collection.constraints].filter(([, one]) => !loose.includes(one));
      return [table, { ...collection, constraints: new Map(constraints) }];
    }),
  );
}

/** Without the key that the server adds to a table without one (sql_generate_invisible_primary_key). */
function withoutGeneratedKey(table: CatalogTable): CatalogTable {
  const primary = table.indexes.find(({ name }) => name === PRIMARY_KEY)?.columns ?? [];
  const generated = table.columns.find(
    ({ name, extra }) => name === 'my_row_id' && /\bauto_increment\b/i.test(extra) && /\binvisible\b/i.test(extra),
  );
  if (!generated || primary.length !== 1 || primary[0]?.name !== generated.name) return table;
  return {
    ...table,
    columns: table.columns.filter((column) => column !== generated),
    indexes: table.indexes.filter(({ name }) => name !== PRIMARY_KEY),
  };
}

/** Without the columns that are kept. */
function withoutKept(table: CatalogTable): CatalogTable {
  const columns = table.columns.filter(({ name }) => !isKeptName(name));
  if (columns.length === table.columns.length) return table;
  const kept = table.columns.map(({ name }) => name).filter(isKeptName);
  return {
    ...table,
    columns,
    indexes: table.indexes.filter((index) => !index.columns.some(({ name }) => isKeptName(name))),
    checks: table.checks.filter(({ expression }) => columnsIn(expression, kept).length === 0),
  };
}

/** The tables and columns that are kept: by the name of each, the table of a column. */
export async function readKeptNames(exec: ExecSql): Promise<ReadonlyMap<string, string | undefined>> {
  const isKept = (column: string) => `${column} LIKE '${KEPT_PREFIX.replaceAll('_', '\\_')}%'`;
  const rows = await rowsOf(
    exec,
    `SELECT table_name AS name, NULL AS t FROM information_schema.tables WHERE table_schema = DATABASE() AND ${isKept('table_name')}
UNION ALL SELECT column_name, table_name FROM information_schema.columns WHERE table_schema = DATABASE() AND ${isKept('column_name')}`,
  );
  return new Map(rows.map(({ name, t }) => [String(name), t === null ? undefined : String(t)]));
}

function collectionOf(context: IntrospectContext, table: CatalogTable, unsupported: UnsupportedObject[]): Collection {
  const { traits, defaultCollation } = context;
  const note = (what: string, field?: string) =>
    unsupported.push({ collection: table.name, ...(field !== undefined && { field }), what });
  const leaveOut = (kind: 'constraint' | 'index', name: string, why: string) =>
    unsupported.push(leftOut(table.name, kind, name, why));

  const order = table.columns.map(({ name }) => name);
  const primary = new Set<string>();
  const unique = new Set<string>();
  const constraints = new Map<string, Constraint>();
  const indexes = new Map<string, Index>();
  for (const index of table.indexes) {
    const columns = index.columns.map(({ name }) => name);
    const [only = ''] = columns;
    if (index.name === PRIMARY_KEY) {
      const key = primaryKeyOf(index);
      if (key.native === undefined && inOrder(columns, order)) for (const name of columns) primary.add(name);
      else constraints.set(PRIMARY_KEY, key);
    } else if (isUniqueFlag(table.name, index)) unique.add(only);
    else if (!isAutomaticIndex(index, table.foreignKeys)) indexes.set(index.name, modelIndex(index));
  }
  for (const key of table.foreignKeys) {
    const read = foreignKey(context, key);
    if (read) constraints.set(read.name, read);
    else leaveOut('constraint', key.name, 'references another database');
  }
  const arrays = new Set<string>();
  const texts = new Set<string>();
  for (const check of table.checks) {
    const array = order.find((name) => isArrayCheck(traits, check.expression, name));
    const json = order.find(
      (name) => withoutOuterParentheses(check.expression) === `json_valid(${quoteIdentifier(name)})`,
    );
    if (array !== undefined && check.native === null) arrays.add(array);
    else if (json !== undefined && check.ofColumn) texts.add(json);
    else if (check.ofColumn) note('has a check in its definition; svc creates table checks', check.name);
    else {
      const columns = columnsIn(check.expression, order);
      constraints.set(check.name, {
        name: check.name,
        type: 'check',
        columns,
        expression: withoutOuterParentheses(check.expression),
        ...(check.native !== null && { native: check.native }),
      });
    }
  }
  const fields = table.columns.map((column): [string, Field] => [
    column.name,
    fieldOf(context, column, table, { primary, unique, arrays, texts }, (what) => note(what, column.name)),
  ]);
  return {
    name: table.name,
    fields: new Map(fields),
    indexes,
    constraints,
    options: optionsOf(table, defaultCollation),
  };
}

function optionsOf(
  { collation, engine, comment, options, versioned }: CatalogTable,
  defaultCollation: string,
): Collection['options'] {
  const native = canonicalTableOptions(
    `${engine === 'InnoDB' ? '' : `ENGINE=${engine} `}${options}${versioned ? ` ${VERSIONED}` : ''}`,
  );
  const differs = collation !== defaultCollation;
  if (!differs && native === '' && comment === '') return {};
  return {
    sqlOptions: { ...(differs && { collation }), ...(comment !== '' && { comment }), ...(native !== '' && { native }) },
  };
}

function inOrder(columns: readonly string[], order: readonly string[]): boolean {
  return columns.every((name, index) => index === 0 || order.indexOf(columns[index - 1] ?? '') < order.indexOf(name));
}

/** Whether the index looks like that of a unique field. */
function isUniqueFlag(table: string, { name, unique, native, columns }: CatalogIndex): boolean {
  const [only, ...more] = columns;
  return (
    native === null && unique && more.length === 0 && !only?.descending && name === uniqueName(table, only?.name ?? '')
  );
}

export function isArrayCheck(traits: Traits, expression: string, column: string): boolean {
  return withoutOuterParentheses(expression).replace(/_\w+'/g, "'") === traits.arrayCheck(quoteIdentifier(column));
}

interface Flags {
  readonly primary: ReadonlySet<string>;
  readonly unique: ReadonlySet<string>;
  readonly arrays: ReadonlySet<string>;
  readonly texts: ReadonlySet<string>;
}

function fieldOf(
  { traits, asShown }: IntrospectContext,
  column: CatalogColumn,
  table: CatalogTable,
  flags: Flags,
  note: (what: string) => void,
): Field {
  const { name, extra } = column;
  const isLost = traits.catalog.expressionsLoseCharacters && column.generated.includes('?');
  if (isLost) note('is computed with characters that the catalog may not have');
  const known = isLost ? { ...column, generated: '' } : column;
  const read = nativeType(known, typeOf(column, flags), table.collation);
  const isZero = hasZeroDate(column);
  if (isZero) note('has a zero date as its default, which svc keeps and does not create');
  const found = isZero ? undefined : column.default;
  const own = found && (parseBits(found, read) ?? parseDefault(found, read));
  const value = (asShown ? shownDefault(found, own, read) : undefined) ?? own;
  if (found && 'expression' in found && value === undefined && isServerUuid(found.expression))
    note('takes uuid() as its default; svc creates random UUIDs');
  const autoIncrement = /\bauto_increment\b/i.test(extra);
  return {
    name,
    ...read,
    ...(read.type === 'time' && hasDurationDefault(found) && { native: canonicalType(column.type) }),
    ...(read.type === 'array' && { items: 'string' as const }),
    ...(flags.primary.has(name) && { primaryKey: true }),
    ...((autoIncrement || (found !== undefined && value === undefined)) && { autoGenerate: true }),
    ...(column.required && { required: true }),
    ...(flags.unique.has(name) && { unique: true }),
    ...(column.comment !== '' && { comment: column.comment }),
    ...(value !== undefined && { default: value }),
  };
}

/** A default that the normal form has as another one: a UUID of the server, `(now())` for CURRENT_TIMESTAMP, bytes. */
function shownDefault(
  found: CatalogDefault | undefined,
  value: Default | undefined,
  { type }: Pick<Field, 'type'>,
): Default | undefined {
  if (!found) return undefined;
  // A number that the server keeps as the default of a text.
  if ('literal' in found) return found.isNumber && type === 'text' ? { $expression: found.literal } : undefined;
  const { expression } = found;
  const isOther =
    value === undefined ? isServerUuid(expression) : /^(?:now\b|0x|unhex\(|convert\(0x)/i.test(expression);
  return isOther ? { $expression: expression } : undefined;
}

/** Beyond a day, which only a field with a type of the engine may have. */
const hasDurationDefault = (found: CatalogDefault | undefined): boolean =>
  found !== undefined && 'literal' in found && /^(?:-|\d{3})/.test(found.literal);

/** The type with what svc has no words for, in the language of the server. */
export function nativeType(column: CatalogColumn, { inexact, ...read }: ReadType, tableCollation: string): ReadType {
  const { charset, collation, spatial, extra, generated } = column;
  const hasCollation = read.type === 'string' || read.type === 'text' || read.type === 'enum';
  const isCollated = hasCollation && charset !== null && collation !== null && collation !== tableCollation;
  const isOwnUuid = read.type === 'uuid' && collation !== null && collation !== UUID_COLLATION;
  const onUpdate = /on update (current_timestamp(?:\(\d?\))?)/i.exec(extra)?.[1];
  const parts = [
    ...(isCollated || isOwnUuid ? [`character set ${charset} collate ${collation}`] : []),
    ...(spatial === '' ? [] : [spatial]),
    ...(generated === ''
      ? []
      : [`generated always as (${generated}) ${/\bstored\b/i.test(extra) ? 'stored' : 'virtual'}`]),
    ...(/\binvisible\b/i.test(extra) ? ['invisible'] : []),
    ...(onUpdate === undefined ? [] : [`on update ${onUpdate.toLowerCase().replace('()', '')}`]),
  ];
  if (!inexact && parts.length === 0) return read;
  return { ...read, native: [canonicalType(column.type), ...parts].join(' ') };
}

/** The default `b'101'` of bits as bytes. */
function parseBits(found: CatalogDefault, { native = '' }: ReadType): Default | undefined {
  if (!/^bit\b/.test(native)) return undefined;
  const digits = /^b'([01]+)'$/.exec('literal' in found ? found.literal : found.expression)?.[1];
  if (digits === undefined) return undefined;
  const bytes = digits.padStart(Math.ceil(digits.length / 8) * 8, '0').match(/.{8}/g) ?? [];
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2))).toString('base64');
}

function typeOf({ name, type, charset }: CatalogColumn, { arrays, texts }: Flags): ReadType {
  const read = readType(type, charset);
  if (read.type !== 'json' && read.type !== 'text') return read;
  if (arrays.has(name)) return { type: 'array' };
  return texts.has(name) ? { type: 'json' } : read;
}

const ACTIONS: Readonly<Record<string, Exclude<ReferentialAction, 'NO ACTION' | 'RESTRICT'>>> = {
  CASCADE: 'CASCADE',
  'SET NULL': 'SET NULL',
  'SET DEFAULT': 'SET DEFAULT',
};

/** The engine treats RESTRICT as NO ACTION, and the catalogs name it differently. */
function foreignKey(
  { traits: { unshownAction }, asShown }: IntrospectContext,
  { name, columns, table, target, ...rules }: CatalogForeignKey,
): Constraint | undefined {
  if (table === null) return undefined;
  const isShown = (rule: string, action: string): boolean => asShown && rule === action && action !== unshownAction;
  const actionOf = (rule: string): Exclude<ReferentialAction, 'NO ACTION'> | undefined =>
    ACTIONS[rule] ?? (isShown(rule, 'RESTRICT') ? 'RESTRICT' : undefined);
  const onDelete = actionOf(rules.onDelete);
  const onUpdate = actionOf(rules.onUpdate);
  const references = { table, columns: target, ...(onDelete && { onDelete }), ...(onUpdate && { onUpdate }) };
  const native = [
    ...(isShown(rules.onDelete, 'NO ACTION') ? ['ON DELETE NO ACTION'] : []),
    ...(isShown(rules.onUpdate, 'NO ACTION') ? ['ON UPDATE NO ACTION'] : []),
  ].join(' ');
  return { name, type: 'foreignKey', columns, references, ...(native !== '' && { native }) };
}

/** With `native` if the key is descending or on the beginning of values. */
export function primaryKeyOf(index: CatalogIndex): PrimaryKeyConstraint {
  const native = index.native ?? (index.columns.some(({ descending }) => descending) ? columnList(index) : undefined);
  const columns = [...new Set(index.columns.map(({ name }) => name))];
  return { name: PRIMARY_KEY, type: 'primaryKey', columns, ...(native !== undefined && { native }) };
}

export function modelIndex({ name, unique, native, columns }: CatalogIndex): Index {
  if (native !== null) {
    const read = [...new Set(columns.map((column) => column.name))].map((column) => ({ name: column }));
    return { name, columns: read, ...(unique && { unique: true }), native };
  }
  return {
    name,
    columns: columns.map((column) => ({ name: column.name, ...(column.descending && { order: 'desc' as const }) })),
    ...(unique && { unique: true }),
  };
}
