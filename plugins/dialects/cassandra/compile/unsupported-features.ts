import type { UnsupportedFeatures } from '../../../../core/schema/unsupported-features.ts';

const NO_CONSTRAINTS = 'Cassandra enforces nothing but the primary key.';
const OTHER_ENGINE = 'They are options of another engine.';

export const unsupported: UnsupportedFeatures = {
  temporaryTable: { why: 'Cassandra has no temporary tables.', next: 'Create an ordinary table with a defaultTTL.' },
  unloggedTable: { why: 'It is a feature of PostgreSQL.', next: 'Remove "unlogged".' },
  mongoOptions: { why: OTHER_ENGINE, next: 'Remove mongoOptions.' },
  dynamoOptions: { why: OTHER_ENGINE, next: 'Remove dynamoOptions.' },
  renameTable: {
    why: 'CQL cannot rename a table, and the prepared statements of your application use the name.',
    next: 'Create a table with the new name, copy the rows, and drop the old table.',
  },
  generatedInteger: {
    why: 'Cassandra has no sequences.',
    next: 'Use the type uuid, and uuid() in your INSERT.',
  },
  unique: {
    why: 'Cassandra guarantees uniqueness only for the primary key.',
    next: 'Create a second table with that field as its key, and write to it with INSERT … IF NOT EXISTS.',
  },
  uniqueConstraint: {
    why: 'Cassandra guarantees uniqueness only for the primary key.',
    next: 'Create a second table with those fields as its key, and write to it with INSERT … IF NOT EXISTS.',
  },
  uniqueIndex: {
    why: 'A Cassandra index does not enforce uniqueness.',
    next: 'Create a second table with that field as its key, and write to it with INSERT … IF NOT EXISTS.',
  },
  expressionDefault: {
    why: 'Defaults are applied by svc, which cannot evaluate CQL.',
    next: 'Use a literal or "now", or set the value in your INSERT.',
  },
  changeKey: {
    why: 'The key of a table cannot be changed, because it determines where rows are stored.',
    next: 'Create a table with the new key, copy the rows, and drop the old table.',
  },
  primaryKeyConstraint: {
    why: 'The key is part of CREATE TABLE and cannot be changed.',
    next: 'Mark the fields with primaryKey: true, or use cassandraOptions, when you create the table.',
  },
  changeType: {
    why: 'The type of a column cannot be changed, and a dropped name cannot be added again with another type.',
    next: 'Give the field another name and the new type, with "renamedFrom" in the schema file, or in a migration with { "type": "renameField", "collection", "from", "to", "strategy": "copy", "changes": { "type" } }: it adds a new column, converts every value and drops the old column.',
  },
  renameField: {
    why: 'Cassandra can rename only key columns.',
    next: 'Use { "type": "renameField", "collection", "from", "to", "strategy": "copy" }: it adds a new column, copies every value and drops the old column.',
  },
  renameKeyField: undefined,
  renameChanged: undefined,
  nativeType: undefined,
  nativeIndex: undefined,
  renameIndexedField: {
    why: 'A column with an index cannot be renamed.',
    next: 'Drop the index first and create it again after the rename.',
  },
  compositeIndex: {
    why: 'A Cassandra index has one column.',
    next: "Create an index for each field (with using: 'sai' a query can use several), or a table with those fields as its key.",
  },
  descendingIndex: {
    why: 'A Cassandra index has no order.',
    next: 'Remove the order; the clusteringOrder of the table orders its rows.',
  },
  foreignKey: { why: NO_CONSTRAINTS, next: 'Check it in your application.' },
  setDefaultAction: { why: NO_CONSTRAINTS, next: 'Check it in your application.' },
  check: { why: NO_CONSTRAINTS, next: 'Check it in your application.' },
};
