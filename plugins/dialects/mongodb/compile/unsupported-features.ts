import type { UnsupportedFeatures } from '../../../../core/schema/unsupported-features.ts';

export const unsupported: UnsupportedFeatures = {
  temporaryTable: {
    why: 'MongoDB has no temporary collections.',
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
