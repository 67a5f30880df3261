import * as assert from 'node:assert/strict';
import type { Connection } from '../../core/dialect.ts';
import type { Json } from '../../core/json.ts';
import { uniqueKeys } from '../../core/schema/keys.ts';
import { isExpression } from '../../core/schema/literal.ts';
import type { Collection, Field, ForeignKey, SchemaModel } from '../../core/schema/model.ts';
import type { EngineOnDatabase } from './dialect-case.ts';
import type { Row, RowRule, StoredRow } from './dialect-under-test.ts';
import { isStoredAs } from './stored-value.ts';
import { describeTestError } from './suite.ts';

/** Rows, inserted in this order into an empty table, and what the table must contain afterwards. */
interface Probe {
  readonly what: string;
  readonly rows: readonly Row[];
  /** The rule that the engine may not enforce. */
  readonly rule?: RowRule;
  /** The rows are valid: the engine must accept them. */
  readonly valid?: true;
  holds(stored: readonly StoredRow[]): boolean;
}

/**
 * Inserts rows that break each rule of some collections, and rows that rely on each default, and checks that the engine
 * does what the model says. `violations` has values that break a check, by the name of its constraint. Leaves every table
 * empty.
 */
export async function assertRowsFollow(
  engine: EngineOnDatabase,
  connection: Connection,
  model: SchemaModel,
  { names, violations, when }: RowRulesOptions,
): Promise<void> {
  const clearAll = async () => {
    for (const { name } of childrenFirst(model)) await engine.clear(connection, name);
  };
  for (const name of names) {
    const collection = model.get(name);
    if (!collection || !sampleRow(engine, model, collection, 1)) continue;
    await clearAll();
    await insertParents(engine, connection, model, collection);
    for (const probe of probes(engine, model, collection, violations)) {
      await engine.clear(connection, name);
      const stored = await insertAndRead(engine, connection, collection, probe);
      const found = `${when}: ${name}: ${probe.what}; it contains ${JSON.stringify(stored, asText)}`;
      assert.ok(probe.holds(stored), `${found}${probe.rule ? `; ${orDeclare(probe.rule)}` : ''}`);
    }
    await assertChecksHoldOnUpdate(engine, connection, model, collection, violations, when);
    await assertCascades(engine, connection, model, collection, when);
  }
  await clearAll();
}

export interface RowRulesOptions {
  readonly names: Iterable<string>;
  readonly violations: Readonly<Record<string, readonly Row[]>>;
  /** For the message: after which operation. */
  readonly when: string;
}

/** Checks the row of a table whose fields have all been left out that may be. */
export async function assertDefaultsApply(
  engine: EngineOnDatabase,
  connection: Connection,
  collection: Collection,
): Promise<void> {
  if (engine.notEnforced?.default !== undefined) return;
  const fields = [...collection.fields.values()];
  const given = fields.filter((field) => field.required && !hasDefault(field));
  const row = Object.fromEntries(given.map((field) => [field.name, sampleValue(field, 1) ?? 'SGVsbG8=']));
  await engine.insert(connection, collection.name, [row], collection.fields).catch((error) => {
    throw new Error(`a row with the defaults was rejected: ${describeTestError(error)}`, { cause: error });
  });
  const [stored] = await engine.read(connection, collection.name);
  const wrong = fields.filter((field) => hasDefault(field) && !isDefaultValue(field, stored?.[field.name]));
  assert.deepEqual(
    wrong.map(({ name }) => `${name}: ${String(stored?.[name])}`),
    [],
    'fields without their default',
  );
}

async function insertAndRead(
  engine: EngineOnDatabase,
  connection: Connection,
  { name, fields }: Collection,
  { what, rows, valid }: Probe,
): Promise<readonly StoredRow[]> {
  for (const row of rows) {
    await engine.insert(connection, name, [row], fields).catch((error) => {
      if (valid) throw new Error(`${name}: ${what}, but ${JSON.stringify(row)}: ${describeTestError(error)}`);
    });
  }
  return engine.read(connection, name);
}

function* probes(
  engine: EngineOnDatabase,
  model: SchemaModel,
  collection: Collection,
  violations: RowRulesOptions['violations'],
): Generator<Probe> {
  const first = sampleRow(engine, model, collection, 1);
  const second = sampleRow(engine, model, collection, 2);
  if (!first || !second) return;
  const isEnforced = (rule: RowRule) => engine.notEnforced?.[rule] === undefined;
  const rejects = (what: string, changes: Row, rule?: RowRule): Probe => ({
    what,
    ...(rule && { rule }),
    rows: [{ ...first, ...changes }],
    holds: (stored) => stored.length === 0,
  });
  yield { what: 'valid rows are accepted', rows: [first, second], valid: true, holds: ({ length }) => length === 2 };
  for (const { columns } of uniqueKeys(collection)) {
    const same = [...columns].flatMap((name) => (name in first ? [[name, first[name] as Json] as const] : []));
    if (same.length < columns.size) continue;
    yield {
      what: `${[...columns].join(', ')} is unique`,
      rows: [first, { ...second, ...Object.fromEntries(same) }],
      holds: ({ length }) => length === 1,
    };
  }
  for (const field of collection.fields.values()) {
    const { name, type, length } = field;
    const { [name]: _, ...without } = first;
    const isNull = (row: StoredRow) => row[name] === null || row[name] === undefined;
    if (field.required && !field.primaryKey && isEnforced('required')) {
      const rows = [...(hasDefault(field) ? [] : [without]), { ...first, [name]: null }];
      yield { what: `${name} is required`, rule: 'required', rows, holds: (stored) => !stored.some(isNull) };
    }
    if (hasDefault(field) && isEnforced('default')) {
      yield {
        what: `the default of ${name} applies`,
        rule: 'default',
        rows: [without],
        valid: true,
        holds: ([row]) => isDefaultValue(field, row?.[name]),
      };
    }
    if (type === 'enum' && isEnforced('enum')) yield rejects(`${name} has one of its values`, { [name]: '-' }, 'enum');
    if (type === 'string' && length !== undefined && isEnforced('length') && !foreignKeyOf(collection, name)) {
      yield rejects(`${name} has at most ${length} characters`, { [name]: 'x'.repeat(length + 1) }, 'length');
    }
  }
  for (const constraint of collection.constraints.values()) {
    if (constraint.type === 'foreignKey') {
      const missing = Object.fromEntries(constraint.columns.map((column) => [column, MISSING_KEY]));
      yield rejects(`the foreign key ${constraint.name} is enforced`, missing);
    } else if (constraint.type === 'check') {
      for (const values of violations[constraint.name] ?? [])
        yield rejects(`the check ${constraint.name} is enforced`, values);
    }
  }
}

/** What the author of a suite can do if the engine does not enforce a rule. */
export const orDeclare = (rule: RowRule): string =>
  `if the engine cannot enforce it, declare notEnforced: { ${rule}: '…' } with the reason`;

/** The row of every sample is above it. */
const MISSING_KEY = 1;

/** Changes a valid row so that it would break a check. */
async function assertChecksHoldOnUpdate(
  engine: EngineOnDatabase,
  connection: Connection,
  model: SchemaModel,
  collection: Collection,
  violations: RowRulesOptions['violations'],
  when: string,
): Promise<void> {
  const { name: table, fields } = collection;
  const row = sampleRow(engine, model, collection, 1);
  if (!row) return;
  for (const { name, type } of collection.constraints.values()) {
    for (const [index, values] of (type === 'check' ? (violations[name] ?? []) : []).entries()) {
      await engine.clear(connection, table);
      await engine.insert(connection, table, [row], fields);
      const set = Object.entries(values).map(([field, value]) => ({ field, value }));
      const job = { table, set, where: [], key: `${when} ${table} ${name} ${index}`, collection };
      await connection.update(job).catch(() => undefined);
      const [stored] = await engine.read(connection, table);
      const broken = Object.entries(values).filter(([field, value]) => {
        const definition = fields.get(field);
        return !stored || (definition && isStoredAs(definition, stored[field], value));
      });
      const found = `${when}: ${table}: an update broke the check ${name}; the row is ${JSON.stringify(stored, asText)}`;
      assert.deepEqual(broken, [], found);
    }
  }
}

/** Deletes the rows that a row references. */
async function assertCascades(
  engine: EngineOnDatabase,
  connection: Connection,
  model: SchemaModel,
  collection: Collection,
  when: string,
): Promise<void> {
  const { name, fields } = collection;
  for (const { references } of foreignKeys(collection)) {
    const row = sampleRow(engine, model, collection, 1);
    if (!row || references.onDelete !== 'CASCADE' || references.table === name) continue;
    await engine.clear(connection, name);
    await engine.insert(connection, name, [row], fields);
    await engine.clear(connection, references.table);
    const message = `${when}: ${name}: deleting a row of ${references.table} deletes the rows that reference it`;
    assert.equal((await engine.read(connection, name)).length, 0, message);
  }
}

async function insertParents(
  engine: EngineOnDatabase,
  connection: Connection,
  model: SchemaModel,
  collection: Collection,
): Promise<void> {
  for (const { references } of foreignKeys(collection)) {
    const parent = model.get(references.table);
    if (!parent || parent === collection) continue;
    await insertParents(engine, connection, model, parent);
    const rows = [1, 2].map((n) => sampleRow(engine, model, parent, n)).filter((row) => row !== undefined);
    await engine.insert(connection, parent.name, rows, parent.fields);
  }
}

/** The n-th valid row, with a value for every field that has samples; undefined if another field needs a value. */
function sampleRow(engine: EngineOnDatabase, model: SchemaModel, collection: Collection, n: number): Row | undefined {
  const row: Record<string, Json> = {};
  for (const field of collection.fields.values()) {
    const key = foreignKeyOf(collection, field.name);
    const referenced =
      key && model.get(key.references.table)?.fields.get(key.references.columns[key.columns.indexOf(field.name)] ?? '');
    const value = sampleValue(referenced ?? field, n);
    if (value !== undefined) row[field.name] = value;
    else if (field.required && (!hasDefault(field) || engine.notEnforced?.default !== undefined)) return undefined;
  }
  return row;
}

function sampleValue({ type, enumValues = [] }: Field, n: number): Json | undefined {
  switch (type) {
    case 'integer':
    case 'bigint':
    case 'smallint':
    case 'float':
    case 'double':
    case 'decimal':
      return 10 + n;
    case 'string':
    case 'text':
      return `v${n}`;
    case 'boolean':
      return n % 2 === 0;
    case 'enum':
      return enumValues[n % enumValues.length];
    case 'date':
      return `2026-01-1${n}`;
    case 'time':
      return `12:00:0${n}`;
    case 'datetime':
    case 'timestamp':
      return `2026-01-1${n} 12:00:00`;
    case 'uuid':
      return `00000000-0000-4000-8000-00000000000${n}`;
    case 'json':
    case 'array':
    case 'binary':
    case 'blob':
      return undefined;
  }
}

const hasDefault = ({ default: value, autoGenerate }: Field): boolean => value !== undefined || autoGenerate === true;

/** Whether a stored value is the default of its field, as far as the representations of drivers can be compared. */
function isDefaultValue(field: Field, value: unknown): boolean {
  const { default: expected, type, scale = 0 } = field;
  if (value === null || value === undefined) return false;
  if (expected === undefined || isExpression(expected)) return true;
  switch (type) {
    case 'decimal':
      return Math.abs(Number(String(value)) - Number(expected)) <= 10 ** -scale;
    case 'date':
    case 'time':
    case 'datetime':
    case 'timestamp':
    case 'array':
      return true;
    default:
      return isStoredAs(field, value, expected);
  }
}

const foreignKeys = ({ constraints }: Collection): ForeignKey[] =>
  [...constraints.values()].filter((constraint) => constraint.type === 'foreignKey');

const foreignKeyOf = (collection: Collection, field: string): ForeignKey | undefined =>
  foreignKeys(collection).find(({ columns }) => columns.includes(field));

/** Collections in an order in which their rows can be deleted. */
function childrenFirst(model: SchemaModel): Collection[] {
  const ordered = new Set<Collection>();
  const add = (collection: Collection): void => {
    for (const { references } of foreignKeys(collection)) {
      const parent = model.get(references.table);
      if (parent && parent !== collection && !ordered.has(parent)) add(parent);
    }
    ordered.add(collection);
  };
  for (const collection of model.values()) add(collection);
  return [...ordered].reverse();
}

const asText = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value);
