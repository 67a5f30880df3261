import { SvcError } from '../../../../core/errors.ts';
import type { Collection } from '../../../../core/schema/model.ts';
import type { ConstraintDefinition, Operation } from '../../../../core/schema/operation.ts';
import { expressionProblem } from './raw.ts';
import { tokenize } from './tokens.ts';

/** Throws `constraint_invalid` for options of a constraint that are not options. */
export function assertNativeOptions(operation: Operation): void {
  if (operation.type === 'addConstraint') {
    const { name, type, native } = operation.constraint;
    assertOptions(native, type, name, operation.collection);
  }
  if (operation.type === 'createCollection' && operation.primaryKey) {
    assertOptions(operation.primaryKey.native, 'primaryKey', operation.primaryKey.name, operation.name);
  }
}

const DEFERRABLE = '(?:NOT )?DEFERRABLE(?: INITIALLY (?:DEFERRED|IMMEDIATE))?';
const LIST = String.raw`\((?:[^()"';]|"(?:[^"]|"")+"|'(?:[^']|'')*')+\)`;
const KEY_OPTIONS = [`INCLUDE ?${LIST}`, `WITH ?${LIST}`, DEFERRABLE];

/** The options of each constraint, in their order. */
const OPTIONS: Readonly<Record<ConstraintDefinition['type'], RegExp>> = {
  foreignKey: optionsPattern(['MATCH FULL', DEFERRABLE, 'NOT ENFORCED', 'NOT VALID']),
  check: optionsPattern(['NO INHERIT', 'NOT ENFORCED', 'NOT VALID']),
  primaryKey: optionsPattern(KEY_OPTIONS),
  unique: optionsPattern(['NULLS NOT DISTINCT', ...KEY_OPTIONS]),
};

function optionsPattern(options: readonly string[]): RegExp {
  return new RegExp(`^${options.map((option) => `(?:${option} ?)?`).join('')}$`, 'i');
}

function assertOptions(
  native: string | undefined,
  type: ConstraintDefinition['type'],
  name: string,
  table: string,
): void {
  if (native === undefined || OPTIONS[type].test(native)) return;
  throw new SvcError('constraint_invalid', `The options of the constraint "${name}" of "${table}" are not valid.`, {
    why: `PostgreSQL has no such options for it: ${JSON.stringify(native)}.`,
    next: ['Write the options in the order of the documentation, separated by one space each.'],
  });
}

/** The definition of an index after the name of its table. Throws `schema_invalid` for a text that could be more than that. */
export function nativeIndex(native: string, table: string, index: string): string {
  const why = /^(USING\s|\()/i.test(native)
    ? expressionProblem(native)
    : 'It begins with neither USING nor a parenthesis.';
  if (why === undefined) return native;
  throw new SvcError('schema_invalid', `The definition of the index "${index}" of "${table}" is not valid.`, {
    why,
    next: [
      'Write what follows the name of the table in CREATE INDEX: USING gin (data), or (lower(email)) WHERE gone IS NULL.',
    ],
  });
}

/** The options of a constraint as the catalog has them, without those that are the default. */
export function canonicalOptions(native: string): string {
  return native
    .replace(/\([^)]*\)|[^()]+/g, (part) => (part.startsWith('(') ? part : part.toUpperCase()))
    .replace(/\bNOT DEFERRABLE\b|\bINITIALLY IMMEDIATE\b/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}

/** The options after the columns of a new table, with a space before them. Throws `schema_invalid`. */
export function nativeTableOptions(native: string | undefined, table: string): string {
  if (native === undefined) return '';
  const { partition, parameters } = tableOptions(native);
  const isValid = (parameters === '' || PARAMETERS.test(parameters)) && (partition === '' || isPartitionKey(partition));
  if (isValid) return ` ${native}`;
  throw new SvcError('schema_invalid', `The options of the table "${table}" are not valid.`, {
    why: `${JSON.stringify(native)} is neither a list of storage parameters nor a partition key.`,
    next: ['Write it as WITH (fillfactor=80, autovacuum_enabled=false), or as PARTITION BY RANGE (created_at).'],
  });
}

interface NativeTableOptions {
  /** `PARTITION BY …`, or empty. */
  readonly partition: string;
  /** `WITH (…)`, or empty. */
  readonly parameters: string;
}

/** Storage parameters follow the partition key. */
export function tableOptions(native: string): NativeTableOptions {
  if (!/^PARTITION\s/i.test(native)) return { partition: '', parameters: native };
  const [, partition = native, parameters = ''] = /^(.*\))\s*(WITH \(.*\))$/is.exec(native) ?? [];
  return { partition, parameters };
}

const PARAMETERS = /^WITH \([\w.]+ ?= ?[\w.-]+(?:, ?[\w.]+ ?= ?[\w.-]+)*\)$/i;

function isPartitionKey(text: string): boolean {
  const key = /^PARTITION\s+BY\s+(?:RANGE|LIST|HASH)\s*(\(.*\))$/is.exec(text)?.[1];
  return key !== undefined && expressionProblem(key) === undefined && isOneList(key);
}

/** Whether the first parenthesis is closed by the last one. */
function isOneList(text: string): boolean {
  const words = [...tokenize(text)].map((token) => token.text);
  let depth = 0;
  const end = words.findIndex((word) => {
    depth += word === '(' ? 1 : word === ')' ? -1 : 0;
    return depth === 0;
  });
  return end === words.length - 1;
}

/** The storage parameters in an order and a spelling of their own: the catalog has those of who wrote them. */
export function canonicalTableOptions(native: string): string {
  const { partition, parameters } = tableOptions(native);
  const sorted = parameters
    .replace(/^WITH \(|\)$/gi, '')
    .split(',')
    .map((one) => one.replace(/\s/g, '').toLowerCase())
    .sort();
  return [partition, parameters === '' ? '' : `WITH (${sorted.join(', ')})`].filter((part) => part !== '').join(' ');
}

/** Indexes and constraints of its own are made for all partitions at once, which nothing can do without blocking. */
export const isPartitioned = (table: Collection | undefined): boolean =>
  /\bPARTITION BY\b/i.test(table?.options?.sqlOptions?.native ?? '');
