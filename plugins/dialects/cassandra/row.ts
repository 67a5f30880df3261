import type { Assignment, Condition } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import type { Row } from './session.ts';
import { comparePlain, encode, equalPlain, type Plain, plain, type Writing } from './value.ts';

/** Whether a row is meant. */
export function conditionsOf(
  where: readonly Condition[],
  fieldOf: (name: string) => Field,
  writing: Writing,
): (row: Row) => boolean {
  const tests = where.map((condition) => {
    const field = fieldOf(condition.field);
    const say = (value: Json): Plain => plain(encode(value, field, writing), field);
    const holds = test(condition, say);
    return (row: Row) => holds(plain(row[field.name], field));
  });
  return (row) => tests.every((holds) => holds(row));
}

function test(condition: Condition, say: (value: Json) => Plain): (found: Plain) => boolean {
  if (condition.operator === 'in') {
    const among = condition.value.map(say);
    return (found) => among.some((one) => equalPlain(found, one));
  }
  const { operator } = condition;
  const wanted = say(condition.value);
  if (operator === 'eq') return (found) => equalPlain(found, wanted);
  if (operator === 'ne') return (found) => !equalPlain(found, wanted);
  const order = (found: Plain) => comparePlain(found, wanted);
  switch (operator) {
    case 'gt':
      return (found) => found !== null && order(found) > 0;
    case 'gte':
      return (found) => found !== null && order(found) >= 0;
    case 'lt':
      return (found) => found !== null && order(found) < 0;
    case 'lte':
      return (found) => found !== null && order(found) <= 0;
  }
}

/** What a row has to be given; nothing where it has it all. A clock alone changes no row, unless nothing else is set. */
export function assignmentsOf(
  set: readonly Assignment[],
  fieldOf: (name: string) => Field,
  writing: Writing,
): (row: Row) => Readonly<Record<string, unknown>> | undefined {
  const clocks = set.filter((assignment) => 'now' in assignment);
  const others = set.filter((assignment) => !('now' in assignment));
  const moments = clocks.map(({ field }) => [field, encode('now', fieldOf(field), writing)] as const);
  return (row) => {
    const values = others.map((assignment) => {
      const field = fieldOf(assignment.field);
      return { field, value: encode(assigned(assignment, row, fieldOf), field, writing) };
    });
    const changes = values.some(({ field, value }) => !equalPlain(plain(row[field.name], field), plain(value, field)));
    const stale =
      others.length === 0 &&
      moments.some(([name, value]) => !equalPlain(plain(row[name], fieldOf(name)), plain(value, fieldOf(name))));
    if (!changes && !stale) return undefined;
    return Object.fromEntries([...values.map(({ field, value }) => [field.name, value] as const), ...moments]);
  };
}

/** NULL counts as empty. */
function assigned(assignment: Assignment, row: Row, fieldOf: (name: string) => Field): Json {
  if ('value' in assignment) return assignment.value;
  if ('now' in assignment) return 'now';
  const text = assignment.concat
    .map((part) => ('literal' in part ? part.literal : row[part.field] == null ? '' : String(row[part.field])))
    .join('');
  const field = fieldOf(assignment.field);
  switch (field.type) {
    case 'integer':
    case 'smallint':
    case 'bigint':
      return whole(text, field);
    case 'enum':
      if (field.enumValues?.includes(text)) return text;
      throw misfit(text, field);
    default:
      return text;
  }
}

const BITS: Readonly<Partial<Record<FieldType, number>>> = { smallint: 16, integer: 32, bigint: 64 };

function whole(text: string, field: Field): Json {
  if (!/^-?\d+$/.test(text) || BigInt.asIntN(BITS[field.type] ?? 64, BigInt(text)) !== BigInt(text)) {
    throw misfit(text, field);
  }
  return field.type === 'bigint' ? text : Number(text);
}

function misfit(text: string, field: Field): SvcError {
  const what = field.type === 'enum' ? 'none of its values' : `no ${field.type}`;
  return new SvcError('data_violates', `A row gives "${field.name}" what is ${what}.`, {
    why: `It is ${JSON.stringify(text)}.`,
  });
}
