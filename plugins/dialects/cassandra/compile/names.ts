import type { NameRules } from '../../../../core/schema/names.ts';

export const NAME = 'cassandra';
export const ENGINE = 'Cassandra';

/** The limit before Cassandra 5.0. */
const MAX_LENGTH = 48;

export const nameRules: NameRules = {
  max: MAX_LENGTH,
  unit: 'characters',
  problem: (name, kind) =>
    kind === 'field' || /^\w+$/.test(name)
      ? undefined
      : `The name of a ${kind} may contain only letters A to Z, digits and underscores.`,
};

/** Every name is quoted: unquoted names fold to lower case and cannot begin with an underscore. */
export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export const identifierList = (names: readonly string[]): string => names.map(quoteIdentifier).join(', ');
