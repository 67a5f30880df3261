import type { Statement } from '../../../core/dialect.ts';
import { isExpression } from '../../../core/schema/default.ts';
import type { Refusals } from '../../../core/schema/features.ts';
import type { Default, Field } from '../../../core/schema/model.ts';
import type { NameRules } from '../../../core/schema/names.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { columnDefinition, defaultText } from '../../sql/column.ts';
import { type Facts, type Grammar, OTHER_OPTIONS, type Renamed } from '../../sql/grammar.ts';
import { enumCheckName, uniqueName } from '../../sql/names.ts';
import { SCHEMA, statement } from '../../sql/text.ts';
import { type AskedAlter, askedAlter, askedFill } from './asked.ts';
import { carriedName, hasRoom } from './carried.ts';
import { has, lacks } from './has.ts';
import { PRIMARY } from './introspect.ts';
import { literal, plainText } from './literal.ts';
import { refuseMisfit } from './misfit.ts';
import { modifyField, refusedMoments } from './modify.ts';
import { quote, text } from './quote.ts';
import { RANDOM } from './random.ts';
import { expressionProblem, raw } from './raw.ts';
import { bytesExpression, isBasic, textExpression } from './string-literal.ts';
import type { Traits } from './traits.ts';
import { columnType, isLong, isNumbered } from './types.ts';

const NOW: Readonly<Partial<Record<FieldType, string>>> = { date: '(CURRENT_DATE)', time: '(CURRENT_TIME(3))' };

const NAMES: NameRules = {
  most: 64,
  of: 'characters',
  problem(name) {
    if (!isBasic(name)) return 'It has a character beyond the Basic Multilingual Plane, which a name cannot have.';
    if (name.endsWith(' ')) return 'It ends in a space.';
    return undefined;
  },
};

const REFUSES: Refusals = {
  ...OTHER_OPTIONS,
  unloggedTable: { why: 'Every InnoDB table is logged.', next: 'Remove "unlogged" from the options of the table.' },
  concurrentIndex: {
    why: 'Indexes are built without stopping writes as it is.',
    next: 'Remove "concurrently" from the options of the index.',
  },
  setDefaultAction: {
    why: 'The server accepts the words and then only refuses what they are for.',
    next: 'Use SET NULL, CASCADE or NO ACTION, and set the default with db.update.',
  },
  longKey: {
    why: 'Such a column is stored beside the row, and an index on it would hold only its beginning.',
    next: 'Use the type string, or binary with a length.',
  },
};

export function grammarOf(traits: Traits): Grammar {
  const alter = (table: string, clauses: readonly string[], facts: Facts = {}, ask: Partial<AskedAlter> = {}) =>
    askedAlter({ table, clauses, ...ask }, facts);
  const columnCheck = (field: Field, table: string): string => {
    if (field.type !== 'array') return '';
    const check = `CHECK (${traits.arrayCheck(quote(field.name))})`;
    // The server's own name for it would be longer than the table's.
    return !traits.ownsColumnChecks && !hasRoom(table)
      ? `CONSTRAINT ${quote(enumCheckName(table, field.name))} ${check}`
      : check;
  };
  const renamedIndexes = (renamed: readonly Renamed[]): string[] =>
    renamed
      .filter(({ type }) => type === 'unique')
      .map(({ from, to }) => `RENAME INDEX ${quote(from)} TO ${quote(to)}`);

  const grammar: Grammar = {
    name: traits.name,
    names: NAMES,
    refuses: REFUSES,
    refuse: (operation, before) => refuseMisfit(traits, operation, before),
    quote,
    text,
    columnType,
    literal,
    defaultLiteral(value, field) {
      if (isBytes(field)) return `(${bytesExpression(String(value))})`;
      return isLong(field) || isBeyond(value, field)
        ? `(${textExpression(plainText(value, field))})`
        : literal(value, field);
    },
    nullable: 'NULL',
    generated: (field) => (isNumbered(field) ? 'AUTO_INCREMENT' : `DEFAULT ${RANDOM}`),
    now: (type) => NOW[type] ?? 'CURRENT_TIMESTAMP(3)',
    columnCheck,
    enumCheck: () => undefined,
    createTable(name, { ifNotExists, temporary }, lines) {
      const head = `CREATE ${temporary ? 'TEMPORARY ' : ''}TABLE ${ifNotExists ? 'IF NOT EXISTS ' : ''}${SCHEMA}${quote(name)}`;
      return [own(statement(`${head} (\n  ${lines.join(',\n  ')}\n)`))];
    },
    // With cascade it is the last of several statements, of which the catalog tells one by one.
    dropTable: (name) =>
      own(statement(`DROP TABLE ${SCHEMA}${quote(name)}`, { destructive: true, check: lacks(has('tables', name)) })),
    renameTable: ({ name }, to, renamed) => [alter(name, [`RENAME TO ${quote(to)}`, ...renamedIndexes(renamed)])],
    alter,
    addField({ name: table }, field, first, last) {
      if (isComputed(traits, field)) return addComputed(grammar, table, field, [...first, ...last]);
      const clauses = [...first, `ADD COLUMN ${columnDefinition(grammar, field, table)}`, ...last];
      if (!isInvented(field)) return [alter(table, clauses)];
      const why = `${field.name} is required and has no default: rows that are there have no value for it.`;
      return [alter(table, clauses, {}, { refused: { rows: 'TRUE', why } })];
    },
    dropField: ({ name: table }, _, clauses) => alter(table, clauses, { destructive: true }),
    renameField({ name: table }, field, to, renamed) {
      const add = columnCheck({ ...field, name: to }, table);
      const checked = field.type === 'array' && !traits.ownsColumnChecks;
      return [
        alter(
          table,
          [`RENAME COLUMN ${quote(field.name)} TO ${quote(to)}`, ...renamedIndexes(renamed)],
          {},
          checked ? { arrayCheck: { column: field.name, drop: true, add } } : {},
        ),
      ];
    },
    modifyField: (before, from, to) => modifyField(grammar, traits, before, from, to),
    createIndex({ collection, index, columns, unique }) {
      const keys = columns.map(({ name, order }) => `${quote(name)}${order?.toLowerCase() === 'desc' ? ' DESC' : ''}`);
      return alter(collection, [`ADD ${unique ? 'UNIQUE ' : ''}INDEX ${quote(index)} (${keys.join(', ')})`]);
    },
    dropIndex: (collection, index) => alter(collection, [`DROP INDEX ${quote(index)}`], {}, { dropsIndexes: [index] }),
    dropConstraint(table, { type, name }) {
      switch (type) {
        case 'foreignKey': {
          const names = [name, carriedName(traits, type, name, table) ?? name];
          const there = names.map((one) => has('referential_constraints', table, { constraint_name: one }));
          return alter(
            table,
            [`DROP FOREIGN KEY ${quote(name)}`],
            { check: lacks(...new Set(there)) },
            { dropsForeignKey: name },
          );
        }
        case 'unique':
          return alter(table, [`DROP INDEX ${quote(name)}`], {}, { dropsIndexes: [name] });
        case 'primaryKey':
          return alter(table, ['DROP PRIMARY KEY']);
        case 'check':
          return alter(
            table,
            [`${traits.dropCheck} ${quote(name)}`],
            {},
            carriedName(traits, type, name, table) === undefined ? {} : { dropsCheck: name },
          );
      }
    },
    dropPrimaryKey: () => 'DROP PRIMARY KEY',
    expressionProblem,
    raw,
  };
  return grammar;
}

/** No DDL of ours can be in a transaction. */
const own = (made: Statement): Statement => ({ ...made, transactional: false });

/** The server would make a value up for rows that are there. */
const isInvented = (field: Field): boolean =>
  field.required === true && field.default === undefined && !field.autoGenerate;

/** Of a literal the catalog tells question marks, or no byte behind the first zero. */
const isBytes = ({ type }: Pick<Field, 'type'>): boolean => type === 'binary' || type === 'blob';

/** No literal, but an expression that the catalog gives back. */
const isBeyond = (value: Default, { type }: Pick<Field, 'type'>): boolean =>
  type === 'string' && !isBasic(String(value));

/** Rows that are there would all get one value, or the server refuses it for its binary log, or copies the table. */
function isComputed({ copiesForExpressions }: Traits, field: Field): boolean {
  const { autoGenerate, default: value, type } = field;
  if (autoGenerate) return !isNumbered(field);
  if (value === undefined) return false;
  if (isExpression(value)) return true;
  const expressed =
    isLong(field) || isBytes(field) || isBeyond(value, field) || (value === 'now' && NOW[type] !== undefined);
  return copiesForExpressions && expressed;
}

/** A column whose default is computed: first without it, then with it for new rows, then filled in old ones, then with its keys. */
function addComputed(grammar: Grammar, table: string, field: Field, keys: readonly string[]): Statement[] {
  const { required, primaryKey: _, autoGenerate, default: __, ...plain } = field;
  const computed = autoGenerate ? RANDOM : (defaultText(grammar, field, table) ?? 'NULL');
  const modify = { column: field.name, required: true };
  const add = `ADD COLUMN ${columnDefinition(grammar, plain, table)}`;
  const again = { idempotent: true } as const;
  const whole = { table, clauses: keys, ...(required && { modify, ...refusedMoments(field) }) };
  const shown = [...(required ? [`MODIFY COLUMN ${columnDefinition(grammar, field, table)}`] : []), ...keys];
  const key = field.primaryKey ? PRIMARY : uniqueName(table, field.name);
  return [
    askedAlter({ table, clauses: [add] }, { check: has('columns', table, { column_name: field.name }) }),
    // A MODIFY, because ALTER COLUMN takes no text in parentheses for an expression.
    askedAlter({ table, clauses: [], modify: { column: field.name, default: computed } }, again, [
      `ALTER COLUMN ${quote(field.name)} SET DEFAULT ${computed}`,
    ]),
    askedFill({ table, fill: field.name, with: computed }),
    ...(shown.length > 0
      ? [
          askedAlter(
            whole,
            keys.length > 0 ? { check: has('statistics', table, { index_name: key, column_name: field.name }) } : again,
            shown,
          ),
        ]
      : []),
  ];
}
