import type { Statement } from '../../../../core/dialect.ts';
import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { withoutDefault } from '../../../../core/schema/mirror.ts';
import type { Collection, Field } from '../../../../core/schema/model.ts';
import { derivedName } from '../../../../core/schema/names.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { sqlStatement } from '../../sql/statement.ts';
import { grammar, modifyColumn } from './grammar.ts';
import { qualified, qualifiedIn, quoteIdentifier } from './names.ts';
import { addFieldOnline, modifyFieldOnline } from './online-field.ts';
import { assertDistinct, assertNoRow, assertNotNull, fill, rowsWhere } from './online-steps.ts';
import { dollarQuoted, withGuard } from './plpgsql-guards.ts';
import type { PostgresqlStep } from './step.ts';

type Statements = readonly Statement<PostgresqlStep>[];

/** The column is empty at first: what its default or its constraints would do is done once it has its values. */
function addMirror(before: Collection, field: Field, other: Field): Statements {
  const { name: table } = before;
  const { empty, after } = emptyColumn(before, field);
  const [from, to] = [other, field].map(({ name }) => quoteIdentifier(name));
  const update = `UPDATE ${qualified(table)} SET ${to} = ${from} WHERE ${from} IS NOT NULL`;
  return [
    ...grammar.addField(before, empty),
    ...createTrigger(table, field, other),
    // Rows that a policy hides would be left out in silence.
    withGuard('SET LOCAL row_security = off', sqlStatement(update)),
    ...modifyColumn(after, empty, field),
  ];
}

/** The same for a table with many rows. */
export function addMirrorOnline(before: Collection, field: Field, other: Field): Statements {
  const { name: table } = before;
  const { empty, after } = emptyColumn(before, field);
  return [
    ...(field.required && !other.required ? [assertNotNull(table, other.name)] : []),
    ...(field.unique && !other.unique ? [assertDistinct(table, other.name)] : []),
    ...(addFieldOnline(before, empty) ?? grammar.addField(before, empty)),
    ...createTrigger(table, field, other),
    fill(table, field.name, quoteIdentifier(other.name), true),
    ...(modifyFieldOnline(after, empty, field) ?? modifyColumn(after, empty, field)),
  ];
}

function emptyColumn(before: Collection, field: Field): { readonly empty: Field; readonly after: Collection } {
  const empty = applyFieldChanges(field, { required: false, unique: false, default: null }, before.name);
  return { empty, after: { ...before, fields: new Map(before.fields).set(empty.name, empty) } };
}

function dropMirror(before: Collection, field: Field, other: Field): Statements {
  const [check, ...drops] = dropMirrorOnline(before, field, other);
  return check ? [{ ...check, transactional: true }, ...drops] : drops;
}

export function dropMirrorOnline(before: Collection, field: Field, other: Field): Statements {
  const { name: table } = before;
  const { trigger, routine } = namesOf(table, field, other);
  const [one, two] = [field, other].map(({ name }) => quoteIdentifier(name));
  const violation = {
    ERRCODE: '23514',
    MESSAGE: `"${field.name}" and "${other.name}" of relation "${table}" differ in some row`,
    COLUMN: field.name,
  };
  return [
    assertNoRow(table, rowsWhere(qualified(table), `${one}::text IS DISTINCT FROM ${two}::text`), violation, {
      isAll: true,
    }),
    sqlStatement(`DROP TRIGGER ${trigger} ON ${qualified(table)}`),
    sqlStatement(`DROP FUNCTION ${routine}()`),
    { ...grammar.dropField(before, field), destructive: false },
  ];
}

/** What compiles operations with `mirrors`, too. */
export const mirroringGrammar: Grammar<PostgresqlStep> = { ...grammar, addMirror, dropMirror };

/**
 * Where both columns have values that differ, the one without a default has been written. The condition is a part of the trigger,
 * so that the server refuses to drop either column while it is there.
 */
function createTrigger(table: string, field: Field, other: Field): Statements {
  const written = withoutDefault(field, other);
  const copied = written === field ? other : field;
  const [from, to] = [quoteIdentifier(written.name), quoteIdentifier(copied.name)];
  const { trigger, routine } = namesOf(table, field, other);
  const isUnwritten = `(TG_OP = 'INSERT' AND NEW.${from} IS NULL) OR (TG_OP = 'UPDATE' AND NEW.${from}::text IS NOT DISTINCT FROM OLD.${from}::text)`;
  const body = `BEGIN IF ${isUnwritten} THEN NEW.${from} := NEW.${to}; ELSE NEW.${to} := NEW.${from}; END IF; RETURN NEW; END`;
  return [
    sqlStatement(`CREATE FUNCTION ${routine}() RETURNS trigger LANGUAGE plpgsql AS ${dollarQuoted(body)}`),
    sqlStatement(
      `CREATE TRIGGER ${trigger} BEFORE INSERT OR UPDATE ON ${qualified(table)} FOR EACH ROW WHEN (NEW.${from}::text IS DISTINCT FROM NEW.${to}::text) EXECUTE FUNCTION ${routine}()`,
    ),
  ];
}

/** The server runs triggers in the order of their names: this one after those of the user, which begin with a letter. */
function namesOf(table: string, field: Field, other: Field): { readonly trigger: string; readonly routine: string } {
  const columns = [field.name, other.name].sort();
  const limit = { max: 58, unit: 'bytes' } as const;
  const [first = '', second = ''] = columns;
  return {
    trigger: quoteIdentifier(`~svc_${derivedName(first, [second], 'mirror', limit)}`),
    routine: qualifiedIn(table, `_svc_${derivedName(table, columns, 'mirror', limit)}`),
  };
}
