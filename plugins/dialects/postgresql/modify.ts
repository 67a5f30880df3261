import { isDeepStrictEqual } from 'node:util';
import type { Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Collection, Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { defaultText, fieldConstraints, primaryKey } from '../../sql/column.ts';
import { keyAfter } from '../../sql/compile.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { losesSilently } from '../../sql/loses.ts';
import { derivedConstraints, enumCheckName, primaryKeyFields } from '../../sql/names.ts';
import { SCHEMA, statement } from '../../sql/text.ts';
import { block, relation } from './block.ts';
import { converted } from './convert.ts';
import { onOwnEnums } from './own-enums.ts';

/** One ALTER TABLE: the engine orders its clauses so that constraints fall before and rise after the column changes. */
export function modifyField(grammar: Grammar, before: Collection, from: Field, to: Field): Statement[] {
  const { quote } = grammar;
  const table = before.name;
  const column = quote(from.name);
  const clauses: string[] = [];
  const clause = (text: string) => clauses.push(`ALTER COLUMN ${column} ${text}`);

  const dropped = derivedConstraints(grammar, from).map(({ name }) => name(table, from.name));
  const old = fieldConstraints(grammar, from, table);
  const fresh = fieldConstraints(grammar, to, table);
  const keyChanges = from.primaryKey !== to.primaryKey;
  if (keyChanges && primaryKeyFields(before).length > 0) clauses.push(grammar.dropPrimaryKey(before));
  const falling = dropped.filter((_, index) => !fresh.includes(old[index] ?? ''));
  for (const name of falling) clauses.push(`DROP CONSTRAINT ${quote(name)}`);

  const oldType = grammar.columnType(from, table);
  const newType = grammar.columnType(to, table);
  const retyped = oldType !== newType;
  if (retyped && (from.type === 'array' || to.type === 'array')) refuseOwnReference(before, from);
  const was = defaultOf(grammar, from, table);
  const is = defaultOf(grammar, to, table);
  const identity = isIdentity(from);
  // A clause of the same ALTER would still see the identity of the old type, or the old type of the new identity.
  const found: Statement[] = [];
  if (identity && !isIdentity(to)) {
    // An adopted serial is an identity in the model, and to the server a column with a default.
    const both = ['DROP IDENTITY IF EXISTS', 'DROP DEFAULT'].map((what) => `ALTER COLUMN ${column} ${what}`);
    found.push(grammar.alter(table, both));
  } else if (was !== undefined && (retyped || was !== is)) clause('DROP DEFAULT');
  if (retyped) {
    const using = converted(column, from, to);
    clause(`TYPE ${newType}${using === undefined ? '' : ` USING ${using}`}`);
  }
  if (is !== undefined && (retyped || was !== is)) clause(`SET DEFAULT ${is}`);
  if (isRequired(to) && !isRequired(from)) clause('SET NOT NULL');
  if (!isRequired(to) && isRequired(from)) clause('DROP NOT NULL');
  for (const constraint of fresh) if (!old.includes(constraint)) clauses.push(`ADD ${constraint}`);
  const key = keyAfter(before, to);
  if (keyChanges && key.length > 0) clauses.push(`ADD ${primaryKey(grammar, key, table)}`);

  if (clauses.length > 0) {
    const destructive = (retyped || !isDeepStrictEqual(from.type, to.type)) && losesSilently(from, to);
    const altered = grammar.alter(table, clauses, { destructive });
    const check = enumCheckName(table, from.name);
    found.push(falling.includes(check) ? onOwnEnums(grammar, before, [from], altered) : altered);
  }
  if (identity && isIdentity(to) && WIDTHS.indexOf(to.type) > WIDTHS.indexOf(from.type)) {
    found.push(widenSequence(grammar, table, from.name, newType));
  }
  if (isIdentity(to) && !identity) {
    found.push(grammar.alter(table, [`ALTER COLUMN ${column} ADD ${grammar.generated(to) ?? ''}`]));
    found.push(continueFromLast(grammar, table, from.name));
  }
  return found;
}

/** The server looks up what compares the values of such a key, and finds nothing for its own half-changed table. */
function refuseOwnReference({ name: table, constraints }: Collection, { name }: Field): void {
  for (const constraint of constraints.values()) {
    if (constraint.type !== 'foreignKey' || constraint.references.table !== table) continue;
    if (!constraint.columns.includes(name) && !constraint.references.columns.includes(name)) continue;
    throw new SvcError('field_in_use', `The type of "${table}.${name}" cannot become or cease to be an array.`, {
      why: `The foreign key "${constraint.name}" points from the table to itself.`,
      next: ['Drop the foreign key first, and add it again afterwards.'],
    });
  }
}

function defaultOf(grammar: Grammar, field: Field, table: string): string | undefined {
  if (field.autoGenerate && !isIdentity(field)) return grammar.generated(field)?.replace(/^DEFAULT /, '');
  return defaultText(grammar, field, table);
}

export function isIdentity({ autoGenerate, type }: Field): boolean {
  return autoGenerate === true && (type === 'integer' || type === 'bigint' || type === 'smallint');
}

const WIDTHS: readonly FieldType[] = ['smallint', 'integer', 'bigint'];

/** The sequence of an identity follows the type of its column; that of an adopted serial would end where the old type does. */
function widenSequence({ quote, text }: Grammar, table: string, field: string, type: string): Statement {
  return statement(
    block(
      `DECLARE seq regclass; BEGIN FOR seq IN SELECT s.seqrelid FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum JOIN pg_depend p ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_class'::regclass JOIN pg_sequence s ON s.seqrelid = p.refobjid JOIN pg_type t ON t.oid = s.seqtypid WHERE a.attrelid = ${relation(quote(table))} AND a.attname = ${text(field)} AND t.typlen < a.attlen LOOP EXECUTE format('ALTER SEQUENCE %s AS ${type}', seq); END LOOP; END`,
    ),
  );
}

/** An identity column is never null, said or not. */
function isRequired(field: Field): boolean {
  return field.required === true || isIdentity(field);
}

/** A new identity starts at 1, where rows may be already. */
function continueFromLast({ quote, text }: Grammar, table: string, field: string): Statement {
  const column = `t.${quote(field)}`;
  return statement(
    `SELECT setval(d.objid::regclass, max(${column})) FROM ${SCHEMA}${quote(table)} t JOIN pg_attribute a ON a.attrelid = t.tableoid AND a.attname = ${text(field)} JOIN pg_depend d ON d.refobjid = t.tableoid AND d.refobjsubid = a.attnum AND d.deptype = 'i' AND d.classid = 'pg_class'::regclass GROUP BY d.objid HAVING max(${column}) > 0`,
  );
}
