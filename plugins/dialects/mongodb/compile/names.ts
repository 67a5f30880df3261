import { assertNameFits, type NameKind, type NameRules } from '../../../../core/schema/names.ts';

/** The name in raw operations and the configuration. */
export const NAME = 'mongodb';

/** A namespace has at most 255 bytes on mongod and 235 on DocumentDB, 64 of them for the name of the database. */
export const nameRules: NameRules = {
  max: 170,
  unit: 'bytes',
  problem(name: string, kind: NameKind): string | undefined {
    if (kind === 'table') {
      if (name.includes('$')) return 'MongoDB does not allow $ in the name of a collection.';
      if (name.startsWith('system.')) return 'MongoDB reserves names that begin with system.';
      if (name.startsWith('.') || name.endsWith('.')) return 'The name of a collection cannot begin or end with a dot.';
      return undefined;
    }
    if (kind === 'field') {
      if (name.startsWith('$')) return 'MongoDB reads a name that begins with $ as an operator.';
      if (name.includes('.')) return 'MongoDB reads a dot as a path into an embedded document.';
      if (/^\d+$/.test(name)) return 'MongoDB reads a number as an array index.';
      return undefined;
    }
    if (kind === 'index' && (name === '*' || name === '_id_')) return 'MongoDB reserves that name.';
    return undefined;
  },
};

export function assertName(name: string, kind: NameKind): void {
  assertNameFits('MongoDB', nameRules, name, kind);
}
