import { SvcError } from '../../../../core/errors.ts';
import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { Constraint, Field } from '../../../../core/schema/model.ts';
import type { NameRules } from '../../../../core/schema/names.ts';
import type { UnsupportedFeatures } from '../../../../core/schema/unsupported-features.ts';
import { columnDefinition, defaultExpression } from '../../sql/column.ts';
import { constraintDefinition } from '../../sql/compile.ts';
import { type Grammar, type RenamedConstraint, UNSUPPORTED_BY_SQL } from '../../sql/grammar.ts';
import { enumCheckName, uniqueName } from '../../sql/names.ts';
import { PRIMARY_KEY } from '../catalog/catalog-table.ts';
import { hasRoomForCheckNames, renamedName } from '../catalog/renamed-constraints.ts';
import type { Traits } from '../variant.ts';
import { assertValidOperation } from './assert-operation.ts';
import { RANDOM_UUID } from './generated-uuid.ts';
import {
  bytesExpression,
  isBasicMultilingual,
  literal,
  plainText,
  quoteIdentifier,
  quoteLiteral,
  textExpression,
} from './literal.ts';
import { addPrimaryKey, addUnique, modifyField, rejectMissingTimestamps } from './modify-field.ts';
import { assertCollationName, nativeIndex, nativeTableOptions } from './native-options.ts';
import { compileRaw, expressionProblem } from './raw.ts';
import {
  type AlterClause,
  alterStatement,
  createTableSql,
  dropTableSql,
  existsQuery,
  fillStatement,
  type MysqlStatement,
  type MysqlStep,
  missingQuery,
  type PlainClause,
  planned,
} from './step.ts';
import { columnType, isAutoIncrement, isLong, nativeAttributes } from './types.ts';

/** The precision of a default is that of its column. */
function nowSql({ type, native }: Pick<Field, 'type' | 'native'>): string {
  if (type === 'date') return '(CURRENT_DATE)';
  const precision = native === undefined ? '(3)' : (/^\w+(\(\d\))/.exec(native)?.[1] ?? '');
  return type === 'time' ? `(CURRENT_TIME${precision || '()'})` : `CURRENT_TIMESTAMP${precision}`;
}

const NAMES: NameRules = {
  max: 64,
  unit: 'characters',
  problem(name) {
    if (!isBasicMultilingual(name)) return 'It contains a character beyond the Basic Multilingual Plane.';
    if (name.endsWith(' ')) return 'It ends in a space.';
    return undefined;
  },
};

const UNSUPPORTED: UnsupportedFeatures = {
  ...UNSUPPORTED_BY_SQL,
  nativeType: undefined,
  comment: undefined,
  nativeTable: undefined,
  nativeIndex: undefined,
  nativeConstraint: undefined,
  tableCollation: undefined,
  unloggedTable: { why: 'Every InnoDB table is logged.', next: 'Remove "unlogged" from the options of the table.' },
  concurrentIndex: {
    why: 'The server builds every index without blocking writes.',
    next: 'Remove "concurrently" from the options of the index.',
  },
  dropLastField: { why: 'The server has no tables without columns.', next: 'Drop the table.' },
  setDefaultAction: {
    why: 'The server accepts the clause, but then rejects every change that would apply it.',
    next: 'Use SET NULL, CASCADE or NO ACTION, and set the default with db.update.',
  },
  longKey: {
    why: 'Such a column is stored outside the row, and an index could only cover the beginning of its values.',
    next: 'Use the type string, or binary with a length.',
  },
};

export function createGrammar(traits: Traits): Grammar<MysqlStep> {
  const columnCheck = (field: Field, table: string): string => {
    if (field.type !== 'array') return '';
    const check = `CHECK (${traits.arrayCheck(quoteIdentifier(field.name))})`;
    // The name that the server would choose is longer than the table's.
    return !traits.hasColumnChecks && !hasRoomForCheckNames(table)
      ? `CONSTRAINT ${quoteIdentifier(enumCheckName(table, field.name))} ${check}`
      : check;
  };
  const renameIndexes = (renamed: readonly RenamedConstraint[]): PlainClause[] =>
    renamed.filter(({ type }) => type === 'unique').map(({ from, to }) => ({ kind: 'renameIndex', from, to }));

  const grammar: Grammar<MysqlStep> = {
    name: traits.name,
    names: NAMES,
    unsupported: UNSUPPORTED,
    assertOperation: (operation, before) => assertValidOperation(traits, operation, before),
    quoteIdentifier,
    quoteLiteral,
    columnType,
    literal,
    defaultLiteral(value, field) {
      if (isBits(field)) return bitsLiteral(String(value));
      if (isBytes(field) && isLong(field)) return `(${longBytesSql(traits, String(value))})`;
      if (!isLong(field)) return literal(value, field);
      const text = plainText(value, field);
      return `(${traits.hasLongLiterals ? quoteLiteral(text) : textExpression(text)})`;
    },
    nullable: 'NULL',
    generated(field) {
      const value = isAutoIncrement(field) ? 'AUTO_INCREMENT' : `DEFAULT ${RANDOM_UUID}`;
      return [nativeAttributes(field), field.autoGenerate ? value : ''].filter((part) => part !== '').join(' ');
    },
    now: nowSql,
    columnComment: ({ name, comment }, table) =>
      comment === undefined ? '' : `COMMENT ${quoteLiteral(assertComment(comment, `${table}.${name}`, 1024))}`,
    columnCheck,
    enumCheck: () => undefined,
    primaryKey,
    createTable(table, { ifNotExists, temporary, collation, comment, native }, lines) {
      const head = `CREATE ${temporary ? 'TEMPORARY ' : ''}TABLE ${ifNotExists ? 'IF NOT EXISTS ' : ''}${quoteIdentifier(table)}`;
      const rest = `${nativeTableOptions(native, table)}${comment ? ` COMMENT=${quoteLiteral(assertComment(comment, table, 2048))}` : ''}`;
      const collated = collation === undefined ? '' : ` DEFAULT COLLATE ${assertCollationName(collation, table)}`;
      const plan = { kind: 'createTable', table, head, lines, options: rest + collated } as const;
      const run = { ...plan, ...(collation !== undefined && { hasCollation: true as const }) };
      return [planned(run, createTableSql(run))];
    },
    dropTable: (table) =>
      planned({ kind: 'dropTable', table }, dropTableSql(table), {
        destructive: true,
        // With cascade it is the last of several statements, each of which needs its own check.
        check: missingQuery(existsQuery('tables', table)),
      }),
    renameTable: ({ name }, to, renamed) => [
      alterStatement(traits, name, [{ kind: 'renameTable', to }, ...renameIndexes(renamed)]),
    ],
    addConstraint(table, constraint) {
      const sql =
        constraint.type === 'primaryKey'
          ? primaryKey(constraint.columns, constraint)
          : constraintDefinition(grammar, constraint, '');
      return alterStatement(traits, table, [{ kind: 'addConstraint', type: constraint.type, sql }]);
    },
    addField(before, field) {
      const table = before.name;
      const key = primaryKeyFields(before);
      const dropKey: PlainClause[] = field.primaryKey && key.length > 0 ? [{ kind: 'dropPrimaryKey' }] : [];
      const keys = [
        ...(field.primaryKey ? [addPrimaryKey(grammar, [...key, field.name], table)] : []),
        ...addUnique(grammar, field, table),
      ];
      if (hasComputedDefault(traits, field))
        return addFieldWithComputedDefault(grammar, traits, table, field, [...dropKey, ...keys]);
      const clauses = [...dropKey, addColumn(grammar, field, table), ...keys];
      if (!needsValueForRows(field)) return [alterStatement(traits, table, clauses)];
      const why = `${field.name} is required and has no default: existing rows would have no value for it.`;
      return [alterStatement(traits, table, clauses, {}, { rejectRows: { condition: 'TRUE', why } })];
    },
    dropField(before, field) {
      const rest = primaryKeyFields(before).filter((name) => name !== field.name);
      const clauses: AlterClause[] = [
        ...(field.primaryKey ? [{ kind: 'dropPrimaryKey' } as const] : []),
        { kind: 'dropColumn', column: field.name },
        ...(field.primaryKey && rest.length > 0 ? [addPrimaryKey(grammar, rest, before.name)] : []),
      ];
      return alterStatement(traits, before.name, clauses, { destructive: true });
    },
    renameField({ name: table }, field, to, renamed) {
      const rename = [{ kind: 'renameColumn', from: field.name, to } as const, ...renameIndexes(renamed)];
      if (field.type !== 'array' || traits.hasColumnChecks) return [alterStatement(traits, table, rename)];
      const check = columnCheck({ ...field, name: to }, table);
      return [
        alterStatement(traits, table, [
          { kind: 'dropArrayCheck', column: field.name },
          ...rename,
          { kind: 'addArrayCheck', sql: check },
        ]),
      ];
    },
    modifyField: (before, from, to) => modifyField(grammar, traits, before, from, to),
    createIndex({ collection, index, columns, unique, native }) {
      const keys = columns.map(({ name, order }) => ({
        name,
        ...(order?.toLowerCase() === 'desc' && { descending: true as const }),
      }));
      const add: PlainClause = {
        kind: 'addIndex',
        name: index,
        ...(unique && { unique }),
        columns: keys,
        ...(native !== undefined && { native: nativeIndex(native, collection, index) }),
      };
      return alterStatement(traits, collection, [add]);
    },
    dropIndex: (collection, index) => alterStatement(traits, collection, [{ kind: 'dropIndex', name: index }]),
    dropConstraint(table, { type, name }) {
      switch (type) {
        case 'foreignKey': {
          const names = new Set([name, renamedName(traits, type, name, table) ?? name]);
          const found = [...names].map((one) =>
            existsQuery('referential_constraints', table, { constraint_name: one }),
          );
          return alterStatement(traits, table, [{ kind: 'dropForeignKey', name }], { check: missingQuery(...found) });
        }
        case 'unique':
          return alterStatement(traits, table, [{ kind: 'dropIndex', name }]);
        case 'primaryKey':
          return alterStatement(traits, table, [{ kind: 'dropPrimaryKey' }]);
        case 'check':
          return alterStatement(traits, table, [{ kind: 'dropCheck', name }]);
      }
    },
    expressionProblem,
    raw: compileRaw,
  };
  return grammar;
}

/** Its name is always PRIMARY, which MariaDB rejects as a name. */
const primaryKey = (columns: readonly string[], { native }: Pick<Constraint, 'native'> = {}): string =>
  `PRIMARY KEY ${native ?? `(${columns.map(quoteIdentifier).join(', ')})`}`;

/** Characters beyond the Basic Multilingual Plane become question marks in the catalog. */
function assertComment(comment: string, of: string, max: number): string {
  if (comment.length <= max && isBasicMultilingual(comment)) return comment;
  throw new SvcError('schema_invalid', `The comment of "${of}" cannot be stored.`, {
    why:
      comment.length > max
        ? `It has ${comment.length} characters; the limit is ${max}.`
        : 'It contains a character beyond the Basic Multilingual Plane, which the catalog replaces.',
    next: ['Shorten or reword it.'],
  });
}

function addColumn(grammar: Grammar, field: Field, table: string): PlainClause {
  const isKnown = !field.autoGenerate && !isComputed(field) && !needsValueForRows(field);
  return {
    kind: 'addColumn',
    column: field.name,
    definition: columnDefinition(grammar, field, table),
    ...(isKnown && { value: defaultExpression(grammar, field, table) ?? 'NULL' }),
  };
}

const isComputed = (field: Field): boolean => /^generated/i.test(nativeAttributes(field));

/** The server would invent a value for existing rows. */
const needsValueForRows = (field: Field): boolean =>
  field.required === true && field.default === undefined && !field.autoGenerate && !isComputed(field);

const isBits = ({ native = '' }: Pick<Field, 'native'>): boolean => /^bit\b/i.test(native);

/** `b'101'` of bytes in Base64. */
function bitsLiteral(base64: string): string {
  const digits = [...Buffer.from(base64, 'base64')].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return `b'${digits.replace(/^0+(?=.)/, '')}'`;
}

const isBytes = ({ type }: Pick<Field, 'type'>): boolean => type === 'binary' || type === 'blob';

/** As plain text where the server keeps such a default as it was written. */
function longBytesSql({ hasLongLiterals }: Traits, base64: string): string {
  const bytes = Buffer.from(base64, 'base64');
  const isPlain = hasLongLiterals && bytes.every((byte) => byte >= 0x20 && byte < 0x7f);
  return isPlain ? quoteLiteral(bytes.toString()) : bytesExpression(base64);
}

/** Existing rows would all get one value, or the server rejects the statement (binary log) or copies the table. */
function hasComputedDefault({ copiesForExpressionDefaults }: Traits, field: Field): boolean {
  const { autoGenerate, default: value, type } = field;
  if (autoGenerate) return !isAutoIncrement(field);
  if (value === undefined) return false;
  if (isExpression(value)) return true;
  const expressed = isLong(field) || (value === 'now' && (type === 'date' || type === 'time'));
  return copiesForExpressionDefaults && expressed;
}

/** Adds the column without its default, sets the default for new rows, fills existing rows, and adds the keys last. */
function addFieldWithComputedDefault(
  grammar: Grammar,
  traits: Traits,
  table: string,
  field: Field,
  keys: readonly PlainClause[],
): MysqlStatement[] {
  const { name, required, primaryKey: _, autoGenerate, default: __, ...plain } = field;
  const value = autoGenerate ? RANDOM_UUID : (defaultExpression(grammar, field, table) ?? 'NULL');
  const idempotent = { idempotent: true } as const;
  const added = { check: existsQuery('columns', table, { column_name: name }) };
  const key = field.primaryKey ? PRIMARY_KEY : uniqueName(table, name);
  const keyed = { check: existsQuery('statistics', table, { index_name: key, column_name: name }) };
  const require: AlterClause[] = required ? [{ kind: 'modifyColumn', column: name, required: true }] : [];
  const last = [...require, ...keys];
  return [
    alterStatement(traits, table, [addColumn(grammar, { name, ...plain }, table)], added),
    // MODIFY, because ALTER COLUMN does not treat a parenthesized literal as an expression.
    alterStatement(
      traits,
      table,
      [{ kind: 'modifyColumn', column: name, default: { sql: value } }],
      idempotent,
      {},
      `ALTER COLUMN ${quoteIdentifier(name)} SET DEFAULT ${value}`,
    ),
    fillStatement(table, name, value),
    ...(last.length > 0
      ? [
          alterStatement(
            traits,
            table,
            last,
            keys.length > 0 ? keyed : idempotent,
            required ? rejectMissingTimestamps(field) : {},
            `MODIFY COLUMN ${columnDefinition(grammar, field, table)}`,
          ),
        ]
      : []),
  ];
}
