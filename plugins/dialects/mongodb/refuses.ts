import type { Refusals } from '../../../core/schema/features.ts';
import type { NameKind, NameRules } from '../../../core/schema/names.ts';

/** What raw operations and the configuration call it. */
export const NAME = 'mongodb';

export const refuses: Refusals = {
  temporaryTable: {
    why: 'A collection of MongoDB lives until it is dropped.',
    next: 'Create it without "temporary", and drop it when it is no longer needed.',
  },
  unloggedTable: { why: 'MongoDB logs every write.', next: 'Leave "unlogged" out.' },
  dynamoOptions: { why: 'They are options of another engine.', next: 'Remove dynamoOptions.' },
  cassandraOptions: { why: 'They are options of another engine.', next: 'Remove cassandraOptions.' },
  generatedInteger: {
    why: 'MongoDB has no sequences.',
    next: 'Use the type uuid, or number the documents in the application.',
  },
  foreignKey: {
    why: 'MongoDB has no foreign keys.',
    next: 'Keep the reference in the application, or embed the document.',
  },
  setDefaultAction: {
    why: 'MongoDB has no foreign keys.',
    next: 'Keep the reference in the application, or embed the document.',
  },
};

/** A namespace has 255 bytes on mongod and 235 on DocumentDB, of which 64 may be the database's. */
export const names: NameRules = {
  most: 170,
  of: 'bytes',
  problem(name: string, kind: NameKind): string | undefined {
    if (kind === 'table') {
      if (name.includes('$')) return 'MongoDB allows no $ in the name of a collection.';
      if (name.startsWith('system.')) return 'Names that begin with system. are kept for MongoDB itself.';
      if (name.startsWith('.') || name.endsWith('.')) return 'A dot cannot be at either end.';
      return undefined;
    }
    if (kind === 'field') {
      if (name.startsWith('$')) return 'MongoDB takes what begins with $ for an operator.';
      if (name.includes('.')) return 'MongoDB takes a dot for the way into an embedded document.';
      if (/^\d+$/.test(name)) return 'MongoDB takes a number for a place in an array.';
      return undefined;
    }
    if (kind === 'index' && (name === '*' || name === '_id_')) return 'MongoDB uses that name itself.';
    return undefined;
  },
};
