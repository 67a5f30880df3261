import type { Refusal, Refusals } from '../../../core/schema/features.ts';

const KEY_STAYS = 'The key of a table can never be changed.';
const COPY = 'Create a table of another name with the key that is wanted, and copy the items.';
const NOT_UNIQUE = 'DynamoDB keeps nothing unique but the primary key.';
const GUARD =
  'Put an item for each value that is taken into a table whose key is the value, in one TransactWriteItems with the item.';
const NO_CONSTRAINTS = 'DynamoDB has no constraints.';
const IN_PROGRAM = 'Check it in the program, with a ConditionExpression where it is about the item itself.';

const options = (name: string): Refusal => ({
  why: 'They are options of another engine.',
  next: `Remove ${name} from the options of the table.`,
});

/** What DynamoDB cannot do, and what to do instead. */
export const refusals: Refusals = {
  tableWithoutKey: {
    why: 'Every DynamoDB table has a partition key.',
    next: 'Mark a field with primaryKey: true, or name it in dynamoOptions.partitionKey.',
  },
  temporaryTable: { why: 'DynamoDB has no sessions.', next: 'Create an ordinary table and drop it.' },
  unloggedTable: { why: 'Every write is durable.', next: 'Leave the option out.' },
  mongoOptions: options('mongoOptions'),
  cassandraOptions: options('cassandraOptions'),
  renameTable: {
    why: 'A table keeps its name.',
    next: 'Create a table of the new name, copy the items, drop the old one.',
  },
  generatedInteger: {
    why: 'DynamoDB numbers nothing.',
    next: 'Use a uuid with autoGenerate, or count with an UpdateItem that says ADD.',
  },
  unique: { why: NOT_UNIQUE, next: GUARD },
  uniqueIndex: { why: NOT_UNIQUE, next: GUARD },
  uniqueConstraint: { why: NOT_UNIQUE, next: GUARD },
  expressionDefault: { why: 'DynamoDB has no expressions of that kind.', next: 'Give a literal, or "now".' },
  descendingIndex: {
    why: 'Every index is read in either direction: ScanIndexForward of the query says which.',
    next: 'Leave the order out.',
  },
  changeKey: { why: KEY_STAYS, next: COPY },
  changeKeyField: { why: KEY_STAYS, next: COPY },
  changeIndexedField: {
    why: 'The key of an index can never be changed.',
    next: 'Drop the index, change the field, and create the index again.',
  },
  renameKeyField: { why: KEY_STAYS, next: COPY },
  renameIndexedField: {
    why: 'The key of an index can never be changed.',
    next: 'Drop the index, rename the field, and create the index again.',
  },
  foreignKey: { why: NO_CONSTRAINTS, next: IN_PROGRAM },
  check: { why: NO_CONSTRAINTS, next: IN_PROGRAM },
  primaryKeyConstraint: { why: KEY_STAYS, next: COPY },
};
