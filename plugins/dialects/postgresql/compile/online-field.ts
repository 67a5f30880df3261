import type { Statement } from '../../../../core/dialect.ts';
import { containsWord } from '../../../../core/match-text.ts';
import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { CheckConstraint, Collection, Field } from '../../../../core/schema/model.ts';
import { columnDefinition, fieldConstraints } from '../../sql/column.ts';
import { primaryKeyAfter } from '../../sql/compile.ts';
import { enumCheckName, primaryKeyName, uniqueName } from '../../sql/names.ts';
import { alter, columnComment, grammar, modifyColumn } from './grammar.ts';
import { defaultOf, isIdentity } from './modify-field.ts';
import { quoteIdentifier } from './names.ts';
import {
  addUnchecked,
  assertCheck,
  assertNotNull,
  attachKey,
  buildKey,
  fill,
  isUnchecked,
  requireOnline,
  validate,
} from './online-steps.ts';
import type { PostgresqlStep } from './step.ts';
import { keepsStoredValues } from './type-change.ts';
import { isSerial, isVirtual, nativeSource, storedType } from './types.ts';

type Statements = readonly Statement<PostgresqlStep>[];

/** Undefined where ADD COLUMN does not look at the rows. */
export function addFieldOnline(before: Collection, field: Field): Statements | undefined {
  const { name: table } = before;
  const { name } = field;
  if (isVirtual(field)) {
    const { required, ...optional } = field;
    return required ? [...grammar.addField(before, optional), ...requireOnline(table, name)] : undefined;
  }
  // The server computes their values when it adds them.
  if (field.primaryKey || isIdentity(field) || isSerial(field) || nativeSource(field) !== '')
    return copying(table, grammar.addField(before, field));
  const hasCheck = grammar.enumCheck(field) !== undefined;
  const computed = isComputedForEachRow(field) ? defaultOf(grammar, field, table) : undefined;
  if (!field.unique && !hasCheck && computed === undefined) return undefined;
  const { unique: _unique, ...column } = field;
  const { required: _required, default: _default, autoGenerate: _autoGenerate, ...empty } = column;
  const added = computed === undefined ? column : empty;
  return [
    alter(table, [
      `ADD COLUMN ${columnDefinition(grammar, added, table)}`,
      ...fieldConstraints(grammar, added, table).map((check) => `ADD ${check} NOT VALID`),
    ]),
    ...(field.comment === undefined ? [] : [columnComment(table, field)]),
    ...(computed === undefined
      ? []
      : [alter(table, [`ALTER COLUMN ${quoteIdentifier(name)} SET DEFAULT ${computed}`])]),
    ...(hasCheck ? [validate(table, enumCheckName(table, name))] : []),
    ...(computed === undefined ? [] : [fill(table, name, computed, !field.autoGenerate)]),
    ...(computed !== undefined && field.required ? requireOnline(table, name) : []),
    ...(field.unique ? [buildKey(table, uniqueKey(table, name)), attachKey(table, uniqueKey(table, name))] : []),
  ];
}

/** With the leave to block the table: the server has no other way. */
const copying = (table: string, statements: Statements): Statements =>
  statements.map((statement) =>
    statement.run.kind === 'sql' ? { ...statement, run: { ...statement.run, copies: table } } : statement,
  );

/** Any expression may be. The server computes the moment of `now` once. */
const isComputedForEachRow = ({ autoGenerate, default: value }: Field): boolean =>
  autoGenerate === true || (value !== undefined && isExpression(value));

const uniqueKey = (table: string, field: string) =>
  ({ type: 'unique', name: uniqueName(table, field), columns: [field] }) as const;

/** Undefined where the change does not look at the rows. */
export function modifyFieldOnline(before: Collection, from: Field, to: Field): Statements | undefined {
  const { name: table } = before;
  const { name } = from;
  const [was, is] = [storedType(from, table), storedType(to, table)];
  const changes = () => modifyColumn(before, from, to);
  const retyped = was !== is;
  if (retyped && (!keepsStoredValues(was, is) || hasComputedIndex(before, name))) return copying(table, changes());
  if (from.primaryKey && !to.primaryKey && hasOtherKeyFields(before)) return copying(table, changes());
  // The sequence begins after the highest value.
  if (!isIdentity(from) && isIdentity(to) && !isFirstOfIndex(before, from)) return copying(table, changes());
  if (!isIdentity(from) && isIdentity(to) && !from.required) {
    const required = { ...from, required: true } as const;
    return [assertNotNull(table, name), ...requireOnline(table, name), ...modifyColumn(before, required, to)];
  }
  const check = grammar.enumCheck(to);
  const hasNewCheck = check !== undefined && check !== grammar.enumCheck(from);
  const becomesRequired = to.required === true && !from.required;
  const keys = [
    ...(to.unique && !from.unique ? [uniqueKey(table, name)] : []),
    ...(to.primaryKey && !from.primaryKey ? [primaryKeyWith(before, to)] : []),
  ];
  // With the type of a field, the server checks all rows again.
  const checks = retyped ? validChecks(before, name) : [];
  if (!hasNewCheck && !becomesRequired && keys.length === 0 && checks.length === 0) return undefined;
  // The rest of the change, which does not look at the rows.
  const rest = applyFieldChanges(
    to,
    {
      ...(keys.length > 0 && { unique: from.unique === true, primaryKey: from.primaryKey === true }),
      ...(becomesRequired && { required: false }),
    },
    table,
  );
  return [
    ...(hasNewCheck ? [assertCheck(table, { name: enumCheckName(table, name), expression: check })] : []),
    ...(becomesRequired ? [assertNotNull(table, name)] : []),
    ...keys.map((key) => buildKey(table, key)),
    ...checks.map((one) => alter(table, [`DROP CONSTRAINT ${quoteIdentifier(one.name)}`])),
    ...modifyColumn(before, from, rest, ' NOT VALID'),
    ...checks.map((one) => addUnchecked(table, one)),
    ...(hasNewCheck ? [validate(table, enumCheckName(table, name))] : []),
    ...checks.map((one) => validate(table, one.name)),
    ...(becomesRequired ? requireOnline(table, name) : []),
    ...keys.map((key) => attachKey(table, key)),
  ];
}

function isFirstOfIndex(collection: Collection, { name, unique }: Field): boolean {
  const constraints = [...collection.constraints.values()].filter(
    ({ type }) => type === 'unique' || type === 'primaryKey',
  );
  return (
    unique === true ||
    primaryKeyFields(collection)[0] === name ||
    constraints.some(({ columns }) => columns[0] === name) ||
    [...collection.indexes.values()].some(({ columns, native }) => native === undefined && columns[0]?.name === name)
  );
}

const validChecks = ({ constraints }: Collection, field: string): readonly CheckConstraint[] =>
  [...constraints.values()].filter(
    (one): one is CheckConstraint => one.type === 'check' && one.columns.includes(field) && !isUnchecked(one),
  );

/** The server builds such an index again when the type of the field changes, under the lock. */
const hasComputedIndex = ({ indexes }: Collection, field: string): boolean =>
  [...indexes.values()].some(({ native = '' }) => containsWord(native, field) && /\bWHERE\b|\([^()]*\(/i.test(native));

const hasOtherKeyFields = (collection: Collection): boolean => primaryKeyFields(collection).length > 1;

function primaryKeyWith(before: Collection, field: Field) {
  const name = primaryKeyName(before.name);
  const columns = primaryKeyAfter(before, field);
  const replaces = primaryKeyFields(before).length > 0 ? { replaces: name } : {};
  return { type: 'primaryKey', name, columns, ...replaces } as const;
}
