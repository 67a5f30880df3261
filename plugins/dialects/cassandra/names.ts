import type { NameRules } from '../../../core/schema/names.ts';

/** As the configuration says it, and as people do. */
export const NAME = 'cassandra';
export const ENGINE = 'Cassandra';

/** 222 would do on 5.0; 48 is what older servers take. */
const LONGEST = 48;

export const nameRules: NameRules = {
  most: LONGEST,
  of: 'characters',
  problem: (name, kind) =>
    kind === 'field' || /^\w+$/.test(name)
      ? undefined
      : `A ${kind} of Cassandra has a name of letters A to Z, digits and underscores only.`,
};

/** Always: unquoted names fold to lower case, and one that begins with an underscore is a syntax error. */
export const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export const list = (names: readonly string[]): string => names.map(quote).join(', ');
