import type { Statement } from '../../../core/dialect.ts';
import type { Collection, Field } from '../../../core/schema/model.ts';
import { defaultText } from '../../sql/column.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { enumCheckName } from '../../sql/names.ts';
import { block, guarded, relation } from './block.ts';
import { NATIVE_ENUM } from './errors.ts';

/**
 * The statement, refused as it runs where one of these fields has an enum type of the server. The model takes it for
 * text with a check, as a pull reads it, and the check that is dropped or renamed is not there, or is somebody else's.
 */
export function onOwnEnums(
  grammar: Grammar,
  { name: table }: Collection,
  fields: Iterable<Field>,
  then: Statement,
): Statement {
  const { quote, text } = grammar;
  const enums = [...fields].filter(({ type }) => type === 'enum');
  const asked = enums.map((field) => `(${text(field.name)}, ${text(asText(grammar, table, field))})`);
  const guard = block(
    `DECLARE odd record; BEGIN SELECT v.name, v.remedy, t.typname INTO odd FROM (VALUES ${asked.join(', ')}) v(name, remedy) JOIN pg_attribute a ON a.attname = v.name JOIN pg_type t ON t.oid = a.atttypid AND t.typtype = 'e' WHERE a.attrelid = ${relation(quote(table))} LIMIT 1; IF FOUND THEN RAISE EXCEPTION USING ERRCODE = ${text(NATIVE_ENUM)}, MESSAGE = format('%I of %I has the type %I.', odd.name, ${text(table)}::text, odd.typname), HINT = odd.remedy; END IF; END`,
  );
  return guarded(guard, then);
}

/** The statement that makes such a column what svc makes, and leaves one that is so already as it is. */
function asText(grammar: Grammar, table: string, field: Field): string {
  const { quote } = grammar;
  const column = quote(field.name);
  const check = quote(enumCheckName(table, field.name));
  const value = defaultText(grammar, field, table);
  const clauses = [
    `DROP CONSTRAINT IF EXISTS ${check}`,
    ...(value === undefined ? [] : [`ALTER COLUMN ${column} DROP DEFAULT`]),
    `ALTER COLUMN ${column} TYPE text USING ${column}::text`,
    ...(value === undefined ? [] : [`ALTER COLUMN ${column} SET DEFAULT ${value}`]),
    `ADD CONSTRAINT ${check} CHECK (${grammar.enumCheck(field)})`,
  ];
  return grammar.alter(table, clauses).text;
}
