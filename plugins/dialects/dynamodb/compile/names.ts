import { SvcError } from '../../../../core/errors.ts';
import type { NameRules } from '../../../../core/schema/names.ts';

export const NAME = 'dynamodb';

/** Minimum length of a physical table name (with prefix) and of an index name. */
const MIN_LENGTH = 3;
/** Leaves room for the longest prefix. */
const MAX_LENGTH = 190;

/** https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html */
export const nameRules: NameRules = {
  max: MAX_LENGTH,
  unit: 'bytes',
  problem(name, kind) {
    if (kind === 'field') return undefined;
    if (!/^[a-zA-Z0-9_.-]+$/.test(name)) return 'It may contain only letters, digits, _, - and .';
    if (kind === 'index' && name.length < MIN_LENGTH)
      return `It has ${name.length} characters; at least ${MIN_LENGTH} are needed.`;
    return undefined;
  },
};

/** A table's name in its AWS region. */
export function physicalName(prefix: string, table: string): string {
  const name = prefix === '' ? table : `${prefix}.${table}`;
  if (name.length >= MIN_LENGTH) return name;
  throw new SvcError('name_invalid', `"${table}" cannot be the name of a table on DynamoDB.`, {
    why: `It has ${name.length} characters; at least ${MIN_LENGTH} are needed.`,
    state: 'Nothing was changed.',
    next: ['Choose a longer name, or a URL with a prefix.'],
  });
}

/** Undefined for a table with another prefix. */
export function logicalName(prefix: string, name: string): string | undefined {
  if (prefix === '') return name;
  return name.startsWith(`${prefix}.`) ? name.slice(prefix.length + 1) : undefined;
}

/** Tables of svc itself. */
export const isSystemTable = (table: string): boolean => table.startsWith('_svc_');

/** For PartiQL. */
export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;
