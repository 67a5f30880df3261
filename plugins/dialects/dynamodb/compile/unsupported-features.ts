import type { UnsupportedFeatures, UnsupportedReason } from '../../../../core/schema/unsupported-features.ts';

const KEY_IS_FIXED = 'The key of a table can never be changed.';
const COPY_ITEMS = 'Create a table with a different name and the new key, and copy the items.';
const NOT_UNIQUE = 'DynamoDB guarantees uniqueness only for the primary key.';
const UNIQUE_GUARD = 'Add a table with the value as its key, and write to both tables in one TransactWriteItems.';
const NO_CONSTRAINTS = 'DynamoDB has no constraints.';
const CHECK_IN_APPLICATION = 'Check it in the application, or with a ConditionExpression if it concerns a single item.';

const foreignOptions = (name: string): UnsupportedReason => ({
  why: 'They are options of another engine.',
  next: `Remove ${name} from the options of the table.`,
});

export const unsupported: UnsupportedFeatures = {
  tableWithoutKey: {
    why: 'Every DynamoDB table has a partition key.',
    next: 'Mark a field with primaryKey: true, or name it in dynamoOptions.partitionKey.',
  },
  temporaryTable: { why: 'DynamoDB has no sessions.', next: 'Create an ordinary table and drop it.' },
  unloggedTable: { why: 'Every write is durable.', next: 'Remove the option.' },
  mongoOptions: foreignOptions('mongoOptions'),
  cassandraOptions: foreignOptions('cassandraOptions'),
  renameTable: {
    why: 'DynamoDB cannot rename a table.',
    next: 'Create a table with the new name, copy the items, and drop the old table.',
  },
  generatedInteger: {
    why: 'DynamoDB has no sequences.',
    next: 'Use a uuid with autoGenerate, or a counter item that UpdateItem increments with ADD.',
  },
  unique: { why: NOT_UNIQUE, next: UNIQUE_GUARD },
  uniqueIndex: { why: NOT_UNIQUE, next: UNIQUE_GUARD },
  uniqueConstraint: { why: NOT_UNIQUE, next: UNIQUE_GUARD },
  expressionDefault: { why: 'DynamoDB has no default expressions.', next: 'Use a literal, or "now".' },
  descendingIndex: {
    why: 'Every index can be read in either direction: a query chooses with ScanIndexForward.',
    next: 'Remove the order.',
  },
  changeKey: { why: KEY_IS_FIXED, next: COPY_ITEMS },
  changeKeyField: { why: KEY_IS_FIXED, next: COPY_ITEMS },
  changeIndexedField: {
    why: 'The key of an index can never be changed.',
    next: 'Drop the index, change the field, and create the index again.',
  },
  renameKeyField: { why: KEY_IS_FIXED, next: COPY_ITEMS },
  renameIndexedField: {
    why: 'The key of an index can never be changed.',
    next: 'Drop the index, rename the field, and create the index again.',
  },
  foreignKey: { why: NO_CONSTRAINTS, next: CHECK_IN_APPLICATION },
  check: { why: NO_CONSTRAINTS, next: CHECK_IN_APPLICATION },
  primaryKeyConstraint: { why: KEY_IS_FIXED, next: COPY_ITEMS },
};
