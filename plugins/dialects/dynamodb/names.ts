import { SvcError } from '../../../core/errors.ts';
import type { NameRules } from '../../../core/schema/names.ts';

/** Of a whole table's name, prefix and all, and of an index's. */
const LEAST = 3;
/** Leaves room for the longest prefix. */
const MOST = 190;

/** https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html */
export const names: NameRules = {
  most: MOST,
  of: 'bytes',
  problem(name, kind) {
    if (kind === 'field') return undefined;
    if (!/^[a-zA-Z0-9_.-]+$/.test(name)) return 'It is not made of letters, digits, _, - and . alone.';
    if (kind === 'index' && name.length < LEAST)
      return `It has ${name.length} characters; at least ${LEAST} are needed.`;
    return undefined;
  },
};

/** What a table is called in the region. */
export function physicalName(prefix: string, table: string): string {
  const name = prefix === '' ? table : `${prefix}.${table}`;
  if (name.length >= LEAST) return name;
  throw new SvcError('name_invalid', `"${table}" cannot be the name of a table on dynamodb.`, {
    why: `It has ${name.length} characters; at least ${LEAST} are needed.`,
    state: 'Nothing was changed.',
    next: ['Choose a longer name, or a URL with a prefix.'],
  });
}

/** Undefined for a table of another database. */
export function logicalName(prefix: string, name: string): string | undefined {
  if (prefix === '') return name;
  return name.startsWith(`${prefix}.`) ? name.slice(prefix.length + 1) : undefined;
}

/** Tables of svc itself. */
export const isOurs = (table: string): boolean => table.startsWith('_svc_');

/** An attribute's or a table's name in PartiQL. */
export const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;
