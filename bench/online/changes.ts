import type { NamedFieldDefinition, Operation } from '../../core/schema/operation.ts';

/**
 * One change of the table `visits`, or of a table with a foreign key from or to it, and how knex writes it: the body of
 * `alterTable('visits', (t) => …)`. Without it knex and drizzle are not measured: they send what plain SQL does.
 */
export interface Change {
  readonly name: string;
  readonly operation: Operation;
  readonly knex?: string;
}

const ID = { name: 'id', type: 'bigint', primaryKey: true, autoGenerate: true } as const;

/** The fields of a visit, next to its key. */
export const VISIT: readonly NamedFieldDefinition[] = [
  { name: 'name', type: 'string', length: 40, required: true },
  { name: 'n', type: 'integer' },
  { name: 'owner', type: 'bigint' },
  { name: 'code', type: 'string', length: 40 },
  { name: 'status', type: 'enum', enumValues: ['open', 'paid'] },
  { name: 'old', type: 'integer' },
  { name: 'note', type: 'string', length: 40 },
];

const foreignKey = (name: string, column: string, table: string) =>
  ({ name, type: 'foreignKey', columns: [column], references: { table, columns: ['id'] } }) as const;

/** Applied before the rows are written. In alphabetical order, a table comes after those that it refers to. */
export const TABLES: readonly Operation[] = [
  { type: 'createCollection', name: 'owners', fields: [ID] },
  {
    type: 'createCollection',
    name: 'visits',
    fields: [
      ID,
      ...VISIT,
      { name: 'ticket', type: 'string', length: 40 },
      { name: 'seller', type: 'bigint' },
      { name: 'rank', type: 'integer', default: 1 },
    ],
  },
  { type: 'createIndex', collection: 'visits', index: 'visits_old', columns: [{ name: 'old' }] },
  {
    type: 'addConstraint',
    collection: 'visits',
    constraint: { name: 'visits_check', type: 'check', columns: ['n'], expression: 'n >= 0' },
  },
  {
    type: 'addConstraint',
    collection: 'visits',
    constraint: { name: 'visits_ticket', type: 'unique', columns: ['ticket'] },
  },
  { type: 'addConstraint', collection: 'visits', constraint: foreignKey('visits_seller', 'seller', 'owners') },
  {
    type: 'createCollection',
    name: 'vouchers',
    fields: [ID, { name: 'visit', type: 'bigint' }, { name: 'next', type: 'bigint' }],
  },
  { type: 'addConstraint', collection: 'vouchers', constraint: foreignKey('vouchers_visit', 'visit', 'visits') },
];

const visits = { collection: 'visits' } as const;

export const CHANGES: readonly Change[] = [
  {
    name: 'an index',
    operation: { type: 'createIndex', ...visits, index: 'visits_n', columns: [{ name: 'n' }] },
    knex: "t.index(['n'], 'visits_n')",
  },
  {
    name: 'an index less',
    operation: { type: 'dropIndex', ...visits, index: 'visits_old' },
    knex: "t.dropIndex([], 'visits_old')",
  },
  {
    name: 'a unique constraint',
    operation: {
      type: 'addConstraint',
      ...visits,
      constraint: { name: 'visits_code', type: 'unique', columns: ['code'] },
    },
    knex: "t.unique(['code'], { indexName: 'visits_code' })",
  },
  {
    name: 'a foreign key',
    operation: {
      type: 'addConstraint',
      ...visits,
      constraint: foreignKey('visits_owner', 'owner', 'owners'),
    },
    knex: "t.foreign('owner', 'visits_owner').references('owners.id')",
  },
  {
    name: 'a check',
    operation: {
      type: 'addConstraint',
      ...visits,
      constraint: { name: 'visits_positive', type: 'check', columns: ['n'], expression: 'n > -5' },
    },
    knex: "t.check('n > -5', undefined, 'visits_positive')",
  },
  {
    name: 'a check less',
    operation: { type: 'dropConstraint', ...visits, constraint: 'visits_check' },
    knex: "t.dropChecks('visits_check')",
  },
  {
    name: 'a unique constraint less',
    operation: { type: 'dropConstraint', ...visits, constraint: 'visits_ticket' },
  },
  {
    name: 'a foreign key less',
    operation: { type: 'dropConstraint', ...visits, constraint: 'visits_seller' },
  },
  {
    name: 'a required field',
    operation: { type: 'modifyField', ...visits, field: 'n', changes: { required: true } },
    knex: "t.dropNullable('n')",
  },
  {
    name: 'a field no longer required',
    operation: { type: 'modifyField', ...visits, field: 'name', changes: { required: false } },
  },
  {
    name: 'another default',
    operation: { type: 'modifyField', ...visits, field: 'rank', changes: { default: 2 } },
  },
  {
    name: 'a field with a constant default',
    operation: {
      type: 'addField',
      ...visits,
      field: { name: 'flag', type: 'boolean', required: true, default: false },
    },
    knex: "t.boolean('flag').notNullable().defaultTo(false)",
  },
  {
    name: 'a required uuid for each row',
    operation: {
      type: 'addField',
      ...visits,
      field: { name: 'token', type: 'uuid', autoGenerate: true, required: true },
    },
    knex: "t.uuid('token').notNullable().defaultTo(knex.fn.uuid())",
  },
  {
    name: 'a field with a list of values',
    operation: { type: 'addField', ...visits, field: { name: 'kind', type: 'enum', enumValues: ['a', 'b'] } },
    knex: "t.enu('kind', ['a', 'b'])",
  },
  {
    name: 'a value more in a list',
    operation: { type: 'modifyField', ...visits, field: 'status', changes: { enumValues: ['open', 'paid', 'sent'] } },
    knex: "t.enu('status', ['open', 'paid', 'sent']).alter()",
  },
  {
    name: 'a longer text',
    operation: { type: 'modifyField', ...visits, field: 'code', changes: { length: 60 } },
    knex: "t.string('code', 60).alter()",
  },
  {
    name: 'a shorter text',
    operation: { type: 'modifyField', ...visits, field: 'code', changes: { length: 30 } },
  },
  {
    name: 'an integer becomes a bigint',
    operation: { type: 'modifyField', ...visits, field: 'old', changes: { type: 'bigint' } },
    knex: "t.bigInteger('old').alter()",
  },
  {
    name: 'another name for a field',
    operation: { type: 'renameField', ...visits, from: 'old', to: 'older' },
    knex: "t.renameColumn('old', 'older')",
  },
  {
    name: 'another name for a field, kept in step',
    operation: { type: 'addField', ...visits, field: { name: 'older', type: 'integer' }, mirrors: 'old' },
  },
  {
    name: 'a field less',
    operation: { type: 'dropField', ...visits, field: 'note' },
    knex: "t.dropColumn('note')",
  },
  {
    name: 'a table more',
    operation: { type: 'createCollection', name: 'remarks', fields: [ID, { name: 'text', type: 'text' }] },
  },
  {
    name: 'a foreign key of another table to it',
    operation: {
      type: 'addConstraint',
      collection: 'vouchers',
      constraint: foreignKey('vouchers_next', 'next', 'visits'),
    },
  },
  {
    name: 'a table less, with a foreign key to it',
    operation: { type: 'dropCollection', collection: 'vouchers' },
  },
  {
    name: 'another name for a table that it refers to',
    operation: { type: 'renameCollection', collection: 'owners', to: 'holders' },
  },
];
