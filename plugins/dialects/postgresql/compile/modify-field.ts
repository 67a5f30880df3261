import type { Statement } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import type { Collection, Field, FieldType } from '../../../../core/schema/model.ts';
import { defaultExpression, fieldConstraints, primaryKeyConstraint } from '../../sql/column.ts';
import { alterTable, primaryKeyAfter } from '../../sql/compile.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { isLossyCast } from '../../sql/lossy-casts.ts';
import { derivedConstraints, enumCheckName, primaryKeyName } from '../../sql/names.ts';
import { type SqlText, sqlStatement } from '../../sql/statement.ts';
import { alteredValuesGuard } from './altered-values.ts';
import { conversionExpression, hasNative } from './conversion.ts';
import { qualified } from './names.ts';
import { doBlock, tableOid, withGuard, withNativeEnumGuard } from './plpgsql-guards.ts';
import { keepsStoredValues } from './type-change.ts';
import { isSerial, nativeSource, storedType } from './types.ts';

/** The clause that drops the primary key declared by `primaryKey` flags. */
export const dropPrimaryKey = ({ quoteIdentifier }: Grammar, table: string): string =>
  `DROP CONSTRAINT ${quoteIdentifier(primaryKeyName(table))}`;

/**
 * Mostly one ALTER TABLE: the server drops constraints before it changes the column, and adds them afterwards. `suffix` follows
 * each check that it adds.
 */
export function modifyField(
  grammar: Grammar,
  before: Collection,
  from: Field,
  to: Field,
  suffix: '' | ' NOT VALID' = '',
): Statement<SqlText>[] {
  const { quoteIdentifier } = grammar;
  const table = before.name;
  const column = quoteIdentifier(from.name);
  const clauses: string[] = [];
  const clause = (text: string) => clauses.push(`ALTER COLUMN ${column} ${text}`);

  const oldNames = derivedConstraints(grammar, from).map(({ name }) => name(table, from.name));
  const oldConstraints = fieldConstraints(grammar, from, table);
  const newConstraints = fieldConstraints(grammar, to, table);
  const keyChanges = from.primaryKey !== to.primaryKey;
  if (keyChanges && primaryKeyFields(before).length > 0) clauses.push(dropPrimaryKey(grammar, table));
  const dropped = oldNames.filter((_, index) => !newConstraints.includes(oldConstraints[index] ?? ''));
  for (const name of dropped) clauses.push(`DROP CONSTRAINT ${quoteIdentifier(name)}`);

  const oldType = storedType(from, table);
  const newType = storedType(to, table);
  const retyped = oldType !== newType;
  if (retyped && (from.type === 'array' || to.type === 'array')) assertNoSelfReference(before, from);
  const oldDefault = defaultOf(grammar, from, table);
  const newDefault = defaultOf(grammar, to, table);
  const defaultChanges = retyped || oldDefault !== newDefault;
  const wasIdentity = isIdentity(from);
  const sourceChanges = sourceOf(grammar, from) !== sourceOf(grammar, to);
  if (sourceChanges) assertCreatableSource(table, to);
  // Identity changes are separate statements: in one ALTER they would still see the old type.
  const statements: Statement<SqlText>[] = [];
  if (sourceChanges && isComputed(from)) clause('DROP EXPRESSION');
  else if (sourceChanges && wasIdentity) {
    // An adopted serial is an identity in the model, but a column with a default on the server.
    const both = ['DROP IDENTITY IF EXISTS', 'DROP DEFAULT'].map((what) => `ALTER COLUMN ${column} ${what}`);
    statements.push(alterTable(grammar, table, both));
    if (isSerial(from)) statements.push(dropSequence(grammar, table, from.name));
  } else if (oldDefault !== undefined && defaultChanges) clause('DROP DEFAULT');
  if (retyped) {
    const using = conversionExpression(column, from, to);
    clause(`TYPE ${newType}${using === undefined ? '' : ` USING ${using}`}`);
  }
  if (newDefault !== undefined && defaultChanges) clause(`SET DEFAULT ${newDefault}`);
  // An adopted column that the model takes for an identity may still contain nulls.
  if (isRequired(to) && (!isRequired(from) || (to.required && !from.required))) clause('SET NOT NULL');
  if (!isRequired(to) && isRequired(from)) clause('DROP NOT NULL');
  for (const constraint of newConstraints)
    if (!oldConstraints.includes(constraint)) clauses.push(`ADD ${constraint}${suffix}`);
  const key = primaryKeyAfter(before, to);
  if (keyChanges && key.length > 0) clauses.push(`ADD ${primaryKeyConstraint(grammar, key, table)}`);

  if (clauses.length > 0) {
    const destructive = (retyped || from.type !== to.type) && !hasNative(from, to) && isLossyCast(from, to);
    const altered = alterTable(grammar, table, clauses, { destructive });
    const rewrites = retyped && !keepsStoredValues(oldType, newType);
    const retypes = { table, column: from.name, type: newType };
    const marks = {
      ...(rewrites && { rewrites }),
      ...(rewrites && hasNative(from, to) && isName(newType) && { retypes }),
    };
    const marked = { ...altered, run: { ...altered.run, ...marks } };
    const guard = retyped && !destructive ? alteredValuesGuard(grammar, before, from, to) : undefined;
    const guarded = guard === undefined ? marked : withGuard(guard, marked);
    const check = enumCheckName(table, from.name);
    statements.push(dropped.includes(check) ? withNativeEnumGuard(grammar, before, [from], guarded) : guarded);
  }
  if (wasIdentity && isIdentity(to) && INTEGER_WIDTHS.indexOf(to.type) > INTEGER_WIDTHS.indexOf(from.type)) {
    statements.push(widenSequence(grammar, table, from.name, newType));
  }
  if (isIdentity(to) && sourceChanges) {
    statements.push(alterTable(grammar, table, [`ALTER COLUMN ${column} ADD ${grammar.generated(to) ?? ''}`]));
    statements.push(continueSequence(grammar, table, from.name));
  }
  return statements;
}

/** The name of a type, which may have a schema. */
const isName = (type: string): boolean => /^(?:[\w$.]|"(?:[^"]|"")*")+$/.test(type);

/** The server has no operator between the old type and the new one for the two sides of such a key. */
function assertNoSelfReference({ name: table, constraints }: Collection, { name }: Field): void {
  for (const constraint of constraints.values()) {
    if (constraint.type !== 'foreignKey' || constraint.references.table !== table) continue;
    if (!constraint.columns.includes(name) && !constraint.references.columns.includes(name)) continue;
    throw new SvcError('field_in_use', `The type of "${table}.${name}" cannot change to or from an array.`, {
      why: `The foreign key "${constraint.name}" references its own table.`,
      next: ['Drop the foreign key first, and add it again afterwards.'],
    });
  }
}

export function defaultOf(grammar: Grammar, field: Field, table: string): string | undefined {
  if (field.autoGenerate && !isIdentity(field)) return grammar.generated(field)?.replace(/^DEFAULT /, '');
  return defaultExpression(grammar, field, table);
}

export function isIdentity({ autoGenerate, type }: Pick<Field, 'autoGenerate' | 'type'>): boolean {
  return autoGenerate === true && (type === 'integer' || type === 'bigint' || type === 'smallint');
}

const INTEGER_WIDTHS: readonly FieldType[] = ['smallint', 'integer', 'bigint'];

/** The sequence of an identity has the type of its column; that of an adopted serial keeps the old type's limit. */
function widenSequence({ quoteLiteral }: Grammar, table: string, field: string, type: string): Statement<SqlText> {
  return sqlStatement(
    doBlock(
      `DECLARE seq regclass; BEGIN FOR seq IN SELECT s.seqrelid FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum JOIN pg_depend p ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_class'::regclass JOIN pg_sequence s ON s.seqrelid = p.refobjid JOIN pg_type t ON t.oid = s.seqtypid WHERE a.attrelid = ${tableOid(table)} AND a.attname = ${quoteLiteral(field)} AND t.typlen < a.attlen LOOP EXECUTE format('ALTER SEQUENCE %s AS ${type}', seq); END LOOP; END`,
    ),
  );
}

const isComputed = (field: Field): boolean => nativeSource(field) !== '' && !isIdentity(field);

/** Where the values of the field come from, other than a default. */
function sourceOf(grammar: Grammar, field: Field): string {
  if (isSerial(field)) return 'serial';
  return isIdentity(field) || isComputed(field) ? (grammar.generated(field) ?? '') : '';
}

function assertCreatableSource(table: string, field: Field): void {
  if (!isSerial(field) && !isComputed(field)) return;
  throw new SvcError('not_supported', `The field "${table}.${field.name}" cannot become ${field.native}.`, {
    why: 'PostgreSQL has no statement that makes an existing column a serial or a computed one.',
    next: ['Add a field with that definition, and drop this one; or make a serial an identity with "autoGenerate".'],
  });
}

/** The sequence that belongs to a serial. */
function dropSequence({ quoteLiteral }: Grammar, table: string, field: string): Statement<SqlText> {
  return sqlStatement(
    doBlock(
      `DECLARE seq regclass; BEGIN FOR seq IN SELECT p.objid FROM pg_depend p JOIN pg_attribute a ON a.attrelid = p.refobjid AND a.attnum = p.refobjsubid JOIN pg_sequence s ON s.seqrelid = p.objid WHERE p.classid = 'pg_class'::regclass AND p.deptype = 'a' AND p.refobjid = ${tableOid(table)} AND a.attname = ${quoteLiteral(field)} LOOP EXECUTE format('DROP SEQUENCE %s', seq); END LOOP; END`,
    ),
  );
}

/** An identity column is never null, even without `required`. */
function isRequired(field: Field): boolean {
  return field.required === true || isIdentity(field);
}

/** Continues a new identity, which starts at 1, after the highest existing value. */
function continueSequence(
  { quoteIdentifier, quoteLiteral }: Grammar,
  table: string,
  field: string,
): Statement<SqlText> {
  const column = `t.${quoteIdentifier(field)}`;
  return sqlStatement(
    `SELECT setval(d.objid::regclass, max(${column})) FROM ${qualified(table)} t JOIN pg_attribute a ON a.attrelid = t.tableoid AND a.attname = ${quoteLiteral(field)} JOIN pg_depend d ON d.refobjid = t.tableoid AND d.refobjsubid = a.attnum AND d.deptype = 'i' AND d.classid = 'pg_class'::regclass GROUP BY d.objid HAVING max(${column}) > 0`,
  );
}
