import type { NamedFieldDefinition, Operation } from '../../core/schema/operation.ts';
import type { SqlSyntax } from './dialect-under-test.ts';
import { ID } from './supported-operations.ts';

/** Fields of every type, and operations of every type, which the suite runs. */

/** A table with a field of each type, and defaults that a dialect may write wrongly. */
export const everyField = (syntax: SqlSyntax): readonly NamedFieldDefinition[] => [
  { name: 'id', type: 'bigint', primaryKey: true, autoGenerate: true },
  { name: 'integer', type: 'integer', default: -5, unique: true },
  { name: 'bigint', type: 'bigint', default: '-9007199254740993' },
  { name: 'smallint', type: 'smallint', default: 7, required: true },
  { name: 'float', type: 'float', default: 0.1 },
  { name: 'double', type: 'double', default: 1.5e300 },
  { name: 'tiny', type: 'double', default: -5e-10 },
  { name: 'decimal', type: 'decimal', precision: 20, scale: 4, default: '12345678901234.5600' },
  { name: 'decimal2', type: 'decimal', precision: 10, scale: 2, default: 1e-7 },
  { name: 'string', type: 'string', default: "it's \\ \n 😀" },
  { name: 'generated', type: 'string', length: 36, autoGenerate: true },
  { name: 'short', type: 'string', length: 3, default: '' },
  { name: 'text', type: 'text', default: "'x'::text" },
  { name: 'boolean', type: 'boolean', default: true },
  { name: 'date', type: 'date', default: '2026-01-31' },
  { name: 'time', type: 'time', default: '23:59' },
  { name: 'datetime', type: 'datetime', default: '2026-01-31T23:59:59.120' },
  { name: 'timestamp', type: 'timestamp', default: '2026-01-31T23:59:59.999+02:00' },
  { name: 'date_now', type: 'date', default: 'now' },
  { name: 'time_now', type: 'time', default: 'now' },
  { name: 'datetime_now', type: 'datetime', default: 'now' },
  { name: 'timestamp_now', type: 'timestamp', default: 'now', required: true },
  { name: 'json', type: 'json', default: { b: [1, null, "it's", { c: 1.5 }], a: 'x' } },
  { name: 'json_text', type: 'json', default: 'now' },
  { name: 'uuid', type: 'uuid', default: 'A0000000-0000-4000-8000-00000000000A' },
  { name: 'uuid2', type: 'uuid', autoGenerate: true, required: true },
  { name: 'enum', type: 'enum', enumValues: ["it's", 'b, c', '"', "'::text, '"], default: "it's" },
  { name: 'one', type: 'enum', enumValues: ['only'], unique: true },
  { name: 'array', type: 'array', default: ['a', 'b,c', '{"}', 'NULL', '', '\\'] },
  { name: 'integers', type: 'array', items: 'integer', default: [1, -2] },
  { name: 'bigints', type: 'array', items: 'bigint', default: ['9007199254740993', 1] },
  { name: 'floats', type: 'array', items: 'float', default: [0.1, 0.123456789] },
  { name: 'decimals', type: 'array', items: 'decimal', default: ['1.50'] },
  { name: 'booleans', type: 'array', items: 'boolean', default: [true, false] },
  { name: 'times', type: 'array', items: 'timestamp', default: ['2026-01-31T23:59:59.999Z'] },
  { name: 'jsons', type: 'array', items: 'json', default: [{ a: 'x"y' }, 'text', 1] },
  { name: 'uuids', type: 'array', items: 'uuid' },
  { name: 'texts', type: 'array', items: 'text', default: [] },
  { name: 'bytes', type: 'array', items: 'blob', default: ['AFwn/w==', ''] },
  { name: 'binary', type: 'binary', length: 16, default: 'AFwn/3g=' },
  { name: 'empty', type: 'binary', default: '' },
  { name: 'blob', type: 'blob', required: true, default: 'SGVsbG8=' },
  { name: 'data', type: 'blob', required: true },
  { name: 'expression', type: 'integer', default: { $expression: syntax.sum } },
  { name: 'expression_now', type: 'timestamp', default: { $expression: syntax.now } },
];

/** A check of two numbers, `SqlSyntax.numberRules`. */
export const CHECK = 'positive';
export const baseTables = (
  supportedField: (field: NamedFieldDefinition) => NamedFieldDefinition,
): readonly Operation[] => [
  {
    type: 'createCollection',
    name: 'users',
    fields: [
      ID,
      supportedField({ name: 'email', type: 'string', unique: true, required: true }),
      supportedField({ name: 'mood', type: 'enum', enumValues: ['a', 'b'], default: 'a' }),
      supportedField({ name: 'n', type: 'integer', default: 3 }),
      supportedField({ name: 'createdAt', type: 'timestamp', required: true, default: 'now' }),
    ],
  },
  {
    type: 'createCollection',
    name: 'orders',
    fields: [
      supportedField({ ...ID, autoGenerate: true }),
      { name: 'user', type: 'integer' },
      { name: 'amount', type: 'integer' },
      { name: 'total', type: 'decimal', precision: 10, scale: 2 },
    ],
  },
];

/** Each one runs, is undone and runs again, in this order. Those that depend on an unsupported one are skipped. */
export const operationsToTest = (syntax: SqlSyntax): readonly Operation[] => [
  {
    type: 'addConstraint',
    collection: 'orders',
    constraint: {
      name: 'orders_user_fkey',
      type: 'foreignKey',
      columns: ['user'],
      references: { table: 'users', columns: ['id'], onDelete: 'CASCADE', onUpdate: 'CASCADE' },
    },
  },
  {
    type: 'addConstraint',
    collection: 'orders',
    constraint: { name: CHECK, type: 'check', expression: syntax.numberRules('total', 'amount') },
  },
  { type: 'addConstraint', collection: 'users', constraint: { name: 'pair', type: 'unique', columns: ['n', 'mood'] } },
  {
    type: 'createIndex',
    collection: 'users',
    index: 'users_n',
    columns: [{ name: 'n', order: 'desc' }, { name: 'email' }],
  },
  {
    type: 'createIndex',
    collection: 'users',
    index: 'users_once',
    columns: [{ name: 'n', order: 'DESC' }],
    unique: true,
  },
  { type: 'dropIndex', collection: 'users', index: 'users_once' },
  {
    type: 'addField',
    collection: 'users',
    field: { name: 'kind', type: 'enum', enumValues: ['x', 'y'], required: true, default: 'x', unique: true },
  },
  { type: 'modifyField', collection: 'users', field: 'kind', changes: { enumValues: ['y', 'x', "z'"], unique: false } },
  {
    type: 'modifyField',
    collection: 'users',
    field: 'kind',
    changes: { type: 'string', length: 20, default: 'q', required: false },
  },
  { type: 'modifyField', collection: 'users', field: 'n', changes: { type: 'bigint', default: '9007199254740993' } },
  { type: 'modifyField', collection: 'users', field: 'n', changes: { type: 'text', default: null } },
  { type: 'modifyField', collection: 'orders', field: 'id', changes: { autoGenerate: false } },
  { type: 'modifyField', collection: 'orders', field: 'id', changes: { type: 'bigint', autoGenerate: true } },
  { type: 'modifyField', collection: 'orders', field: 'id', changes: { type: 'string', autoGenerate: false } },
  { type: 'modifyField', collection: 'orders', field: 'id', changes: { type: 'smallint', autoGenerate: true } },
  { type: 'modifyField', collection: 'orders', field: 'user', changes: { primaryKey: true } },
  { type: 'renameField', collection: 'users', from: 'email', to: 'e mail' },
  { type: 'renameField', collection: 'users', from: 'mood', to: 'Mood' },
  { type: 'renameCollection', collection: 'users', to: 'People "x"' },
  { type: 'dropConstraint', collection: 'orders', constraint: CHECK },
  { type: 'dropField', collection: 'orders', field: 'total' },
  { type: 'dropCollection', collection: 'People "x"', cascade: true },
];
