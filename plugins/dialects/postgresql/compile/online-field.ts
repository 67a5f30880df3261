import type { Statement } from '../../../../core/dialect.ts';
import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { Collection, Field } from '../../../../core/schema/model.ts';
import { columnDefinition, fieldConstraints } from '../../sql/column.ts';
import { primaryKeyAfter } from '../../sql/compile.ts';
import { enumCheckName, primaryKeyName, uniqueName } from '../../sql/names.ts';
import { alter, columnComment, grammar, quoteIdentifier } from './grammar.ts';
import { defaultOf, isIdentity, modifyField } from './modify-field.ts';
import { assertCheck, assertNotNull, attachKey, buildKey, fill, requireOnline, validate } from './online-steps.ts';
import type { PostgresqlStep } from './step.ts';
import { DEFAULT_STRING_LENGTH, isSerial, nativeSource, storedType } from './types.ts';

type Statements = readonly Statement<PostgresqlStep>[];

/** Undefined where ADD COLUMN does not look at the rows. */
export function addFieldOnline(before: Collection, field: Field): Statements | undefined {
  const { name: table } = before;
  const { name } = field;
  // The server computes their values when it adds them.
  if (field.primaryKey || isIdentity(field) || isSerial(field) || nativeSource(field) !== '') return undefined;
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
    ...(computed === undefined ? [] : [fill(table, name, computed)]),
    ...(computed !== undefined && field.required ? requireOnline(table, name) : []),
    ...(field.unique ? [buildKey(table, uniqueKey(table, name)), attachKey(table, uniqueKey(table, name))] : []),
  ];
}

/** Any expression may be. The server computes the moment of `now` once. */
const isComputedForEachRow = ({ autoGenerate, default: value }: Field): boolean =>
  autoGenerate === true || (value !== undefined && isExpression(value));

const uniqueKey = (table: string, field: string) =>
  ({ type: 'unique', name: uniqueName(table, field), columns: [field] }) as const;

/** Undefined where the change does not look at the rows, or has to write all of them. */
export function modifyFieldOnline(before: Collection, from: Field, to: Field): Statements | undefined {
  const { name: table } = before;
  const { name } = from;
  if (from.native !== to.native || isIdentity(from) !== isIdentity(to)) return undefined;
  if (storedType(from, table) !== storedType(to, table) && !keepsValues(from, to)) return undefined;
  if (from.primaryKey && !to.primaryKey) return undefined;
  const check = grammar.enumCheck(to);
  const hasNewCheck = check !== undefined && check !== grammar.enumCheck(from);
  const becomesRequired = to.required === true && !from.required;
  const keys = [
    ...(to.unique && !from.unique ? [uniqueKey(table, name)] : []),
    ...(to.primaryKey && !from.primaryKey ? [primaryKeyWith(before, to)] : []),
  ];
  if (!hasNewCheck && !becomesRequired && keys.length === 0) return undefined;
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
    ...(hasNewCheck ? [assertCheck(table, enumCheckName(table, name), check)] : []),
    ...(becomesRequired ? [assertNotNull(table, name)] : []),
    ...keys.map((key) => buildKey(table, key)),
    ...modifyField(grammar, before, from, rest, ' NOT VALID'),
    ...(from.comment === to.comment ? [] : [columnComment(table, to)]),
    ...(hasNewCheck ? [validate(table, enumCheckName(table, name))] : []),
    ...(becomesRequired ? requireOnline(table, name) : []),
    ...keys.map((key) => attachKey(table, key)),
  ];
}

function primaryKeyWith(before: Collection, field: Field) {
  const name = primaryKeyName(before.name);
  const columns = primaryKeyAfter(before, field);
  const replaces = primaryKeyFields(before).length > 0 ? { replaces: name } : {};
  return { type: 'primaryKey', name, columns, ...replaces } as const;
}

/** The server only changes the catalog. */
function keepsValues(from: Field, to: Field): boolean {
  if (from.type === 'string' && to.type === 'string')
    return (from.length ?? DEFAULT_STRING_LENGTH) <= (to.length ?? DEFAULT_STRING_LENGTH);
  if (from.type === 'string') return to.type === 'text' || to.type === 'enum';
  if (from.type !== 'decimal' || to.type !== 'decimal') return false;
  return from.scale === to.scale && (from.precision ?? 0) <= (to.precision ?? 0);
}
