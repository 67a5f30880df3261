import type { Statement } from '../../../../core/dialect.ts';
import type { Collection, Field } from '../../../../core/schema/model.ts';
import { type SqlText, sqlStatement } from '../../sql/statement.ts';
import { quoteLiteral } from './literal.ts';
import { isIdentity } from './modify-field.ts';
import { qualified, qualifiedIn, quoteIdentifier, relationOf } from './names.ts';
import { doBlock, dollarQuoted } from './plpgsql-guards.ts';
import { isSerial } from './types.ts';

export const hasSequence = (field: Field): boolean => isIdentity(field) || isSerial(field);

/** What the server names the sequence of a field, if that is no longer than a name. */
const sequenceName = (table: string, field: string): string => `${relationOf(table).name}_${field}_seq`;

interface Renamed {
  readonly table: string;
  readonly field: string;
}

/** Renames the sequence of a field with its table or itself, so that it has the name that it gets in a new database. Another name stays. */
export function followSequence(from: Renamed, to: Renamed): readonly Statement<SqlText>[] {
  const [was, becomes] = [sequenceName(from.table, from.field), sequenceName(to.table, to.field)];
  if (Buffer.byteLength(becomes) > 63) return [];
  const isFree = `NOT EXISTS (SELECT FROM pg_class o WHERE o.relnamespace = s.relnamespace AND o.relname = ${quoteLiteral(becomes)})`;
  const rename = sqlStatement(
    doBlock(
      `DECLARE own regclass := pg_get_serial_sequence(${dollarQuoted(qualified(to.table))}, ${quoteLiteral(to.field)}); BEGIN IF EXISTS (SELECT FROM pg_class s WHERE s.oid = own AND s.relname = ${quoteLiteral(was)} AND ${isFree}) THEN EXECUTE format('ALTER SEQUENCE %s RENAME TO %I', own, ${quoteLiteral(becomes)}); END IF; END`,
    ),
  );
  const text = `ALTER SEQUENCE IF EXISTS ${qualifiedIn(to.table, was, '')} RENAME TO ${quoteIdentifier(becomes)}`;
  return [{ ...rename, text }];
}

/** The same for each sequence of a table. */
export const followSequences = (table: string, to: string, { fields }: Pick<Collection, 'fields'>) =>
  [...fields.values()]
    .filter(hasSequence)
    .flatMap(({ name: field }) => followSequence({ table, field }, { table: to, field }));
