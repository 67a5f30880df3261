import type { Refusals } from '../../../core/schema/features.ts';

const NO_CONSTRAINTS = 'Cassandra checks one row at a time, and of that only its key.';
const OTHER_ENGINE = 'They are options of another engine.';

export const refuses: Refusals = {
  temporaryTable: { why: 'Every table of Cassandra stays.', next: 'Make an ordinary table with a defaultTTL.' },
  unloggedTable: { why: 'It is a thing of PostgreSQL.', next: 'Remove "unlogged".' },
  mongoOptions: { why: OTHER_ENGINE, next: 'Remove mongoOptions.' },
  dynamoOptions: { why: OTHER_ENGINE, next: 'Remove dynamoOptions.' },
  renameTable: {
    why: 'CQL has no statement for it, and the name stands in every prepared statement of your application.',
    next: 'Create a table of the new name, move the rows, and drop the old one.',
  },
  generatedInteger: {
    why: 'Nodes that know nothing of each other cannot count together.',
    next: 'Use the type uuid, and uuid() in your INSERT.',
  },
  unique: {
    why: 'Nodes that know nothing of each other cannot keep a value unique, but for the key.',
    next: 'Make a second table with that field as its key, written by INSERT … IF NOT EXISTS.',
  },
  uniqueConstraint: {
    why: 'Nodes that know nothing of each other cannot keep values unique, but for the key.',
    next: 'Make a second table with those fields as its key, written by INSERT … IF NOT EXISTS.',
  },
  uniqueIndex: {
    why: 'An index of Cassandra finds rows and does not keep them apart.',
    next: 'Make a second table with that field as its key, written by INSERT … IF NOT EXISTS.',
  },
  expressionDefault: {
    why: 'A default is kept in the registry and carried out by svc, which cannot evaluate CQL.',
    next: 'Give a literal or "now", or write the value in your INSERT.',
  },
  changeKey: {
    why: 'The key says where a row lies: it stands for the life of the table.',
    next: 'Create a table with the new key, move the rows, and drop the old one.',
  },
  primaryKeyConstraint: {
    why: 'The key is part of CREATE TABLE and stands for the life of the table.',
    next: 'Give the fields primaryKey: true, or use cassandraOptions, when the table is created.',
  },
  changeType: {
    why: 'The type of a column is for ever on Cassandra, and a name that was dropped is refused with another type.',
    next: "Copy: renameField to another name with strategy: 'copy' and changes: { type } makes a new column, converts every value and drops the old one.",
  },
  renameField: {
    why: 'Cassandra renames columns of the key only.',
    next: "Copy: the same operation with strategy: 'copy' makes a new column, copies every value and drops the old one.",
  },
  renameChanged: undefined,
  renameIndexedField: {
    why: 'A column that an index is on cannot be renamed.',
    next: 'Drop the index first and make it again after the rename.',
  },
  compositeIndex: {
    why: 'An index of Cassandra has one column.',
    next: "Make one index for each field (with using: 'sai' a query can use several), or a table with those fields as its key.",
  },
  descendingIndex: {
    why: 'An index of Cassandra has no order.',
    next: 'Leave the order out; rows are ordered by clusteringOrder of the table.',
  },
  foreignKey: { why: NO_CONSTRAINTS, next: 'Let your application see to it.' },
  setDefaultAction: { why: NO_CONSTRAINTS, next: 'Let your application see to it.' },
  check: { why: NO_CONSTRAINTS, next: 'Let your application see to it.' },
};
