import { SvcError } from '../../../../core/errors.ts';
import type { Field } from '../../../../core/schema/model.ts';
import { TtlCache } from '../../shared/ttl-cache.ts';
import { introspect } from '../catalog/introspect.ts';
import { keyOfTable, readCatalog } from '../catalog/read-catalog.ts';
import { entryVersions, registryWrite } from '../catalog/registry.ts';
import { quoteIdentifier } from '../compile/names.ts';
import type { CassandraSegment, CassandraStep, DdlStep, FieldConversion, Registered } from '../compile/step.ts';
import { fieldTypeOf } from '../compile/types.ts';
import { tableExistsError } from '../connection/errors.ts';
import { waitForSchemaAgreement } from '../connection/schema-agreement.ts';
import type { Session } from '../connection/session.ts';
import { existingTables, readColumns } from '../connection/system-schema.ts';
import { convertValue } from '../data/convert-value.ts';
import { scan } from '../data/scan.ts';
import { decimalOf, digitCounts } from '../data/value.ts';
import type { RecordChange } from '../records/record-writes.ts';
import type { RunContext } from './run-context.ts';

export interface CreatePreflight {
  readonly exists: boolean;
  /** The version of its registry entry; 0 for none. */
  readonly version: number;
}

interface PreflightReads {
  readonly tables: ReadonlySet<string>;
  readonly versions: ReadonlyMap<string, number>;
}

/**
 * The preflight of each table that the segments create. One read covers all tables that no earlier step affects, because
 * a SERIAL read costs as much as a lightweight transaction.
 */
export class CreatePreflights {
  readonly #context: RunContext;
  readonly #createdTables: readonly string[];
  readonly #affected = new Set<string>();
  #afterRawStatement = false;
  readonly #reads = new TtlCache(() => this.#read());

  constructor(context: RunContext, segments: readonly CassandraSegment[]) {
    this.#context = context;
    const steps = segments.flatMap(({ statements }) => statements.map(({ run }) => run));
    this.#createdTables = steps.flatMap((step) => (step.kind === 'ddl' && step.creates ? [step.table] : []));
  }

  /** The preflight of the next step; undefined if it creates no table or needs a read of its own. */
  async next(step: CassandraStep): Promise<CreatePreflight | undefined> {
    // A user's statement may have changed any table.
    if (step.kind === 'raw') {
      this.#afterRawStatement = true;
      return undefined;
    }
    if (step.kind === 'await') return undefined;
    const { table } = step;
    const isKnown = !this.#afterRawStatement && !this.#affected.has(table);
    this.#affected.add(table);
    if (!isKnown || step.kind !== 'ddl' || !step.creates || this.#createdTables.length === 1) return undefined;
    const { tables, versions } = await this.#reads.get();
    return { exists: tables.has(table), version: versions.get(table) ?? 0 };
  }

  async #read(): Promise<PreflightReads> {
    const [tables, versions] = await Promise.all([
      existingTables(this.#context.session, this.#createdTables),
      entryVersions(this.#context, this.#createdTables),
    ]);
    return { tables, versions };
  }
}

/** Throws `data_violates`, with a count and some keys, if values are not valid for a narrower field. */
export const assertRowsFit = (context: RunContext, table: string, field: Field): Promise<void> =>
  assertRows(context, table, field.name, (value) => fitsField(value, field));

/** Throws `data_violates`, with a count and some keys, if values cannot be converted without loss. */
function assertRowsConvertible(context: RunContext, table: string, { from, to }: FieldConversion): Promise<void> {
  const encodeContext = { types: context.session.types, now: new Date() };
  return assertRows(context, table, from.name, (value) => 'value' in convertValue(value, from, to, encodeContext));
}

async function assertRows(
  { session }: RunContext,
  table: string,
  name: string,
  isValid: (value: unknown) => boolean,
): Promise<void> {
  const [found] = await readCatalog(session, [table]);
  if (!found) throw new SvcError('collection_unknown', `The table "${table}" does not exist.`);
  const partition = keyOfTable(found, 'partition_key').map(({ name }) => name);
  const keys = [...partition, ...keyOfTable(found, 'clustering').map(({ name }) => name)];
  const examples: string[] = [];
  let count = 0;
  for await (const { rows } of scan(session, { table, partition, selected: [...keys, name].map(quoteIdentifier) })) {
    for (const row of rows) {
      if (keys.some((key) => row[key] === null) || isValid(row[name])) continue;
      count += 1;
      if (examples.length < 3) examples.push(keys.map((key) => `${key} ${String(row[key])}`).join(', '));
    }
  }
  if (count === 0) return;
  throw new SvcError('data_violates', `Rows of "${table}" do not allow the change of "${name}".`, {
    why: `${count} ${count === 1 ? 'row has a value' : 'rows have values'} that is invalid for the field, for example: ${examples.join('; ')}.`,
    state: 'Nothing was changed.',
    next: ['Correct those rows first.'],
    details: { count },
  });
}

function fitsField(value: unknown, field: Field): boolean {
  if (value === null || value === undefined) return field.required !== true;
  if (field.enumValues) return field.enumValues.includes(String(value));
  if (field.type === 'string' && field.length !== undefined) return [...String(value)].length <= field.length;
  if (field.type === 'binary' && field.length !== undefined) return (value as Buffer).length <= field.length;
  if (field.type !== 'decimal' || field.precision === undefined) return true;
  const { before, after } = digitCounts(decimalOf(value));
  return after <= (field.scale ?? 0) && before <= field.precision - (field.scale ?? 0);
}

export interface Preparation {
  /** Written before the statement is sent. */
  readonly registryWrites: readonly RecordChange[];
  /** An earlier attempt has sent the statement. */
  readonly alreadySent?: true;
}

/** Runs all checks before a DDL statement concurrently, and waits for schema agreement. */
export async function prepareDdl(context: RunContext, ddl: DdlStep, preflight?: CreatePreflight): Promise<Preparation> {
  const { session, settings } = context;
  const [write, alreadySent] = await Promise.all([
    ddl.registered && registryWriteOf(context, ddl, ddl.registered, preflight),
    ddl.resumes === true && wasSent(context, ddl),
    waitForSchemaAgreement(session, settings.agreementTimeoutMs),
    ddl.creates && assertTableMissing(session, ddl.table, preflight),
    ddl.empty && assertNoRows(session, ddl),
    assertCopyAllowed(context, ddl),
    assertNameNotDropped(session, ddl),
  ]);
  return { registryWrites: write ? [write] : [], ...(alreadySent && { alreadySent }) };
}

async function registryWriteOf(
  context: RunContext,
  ddl: DdlStep,
  registered: Registered,
  preflight: CreatePreflight | undefined,
): Promise<RecordChange> {
  if (!('table' in ddl.effect)) return registryWrite(context, ddl.table, registered, preflight?.version);
  const [row] = await context.session.rows(
    'SELECT id FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?',
    [context.session.keyspace, ddl.table],
  );
  return registryWrite(context, ddl.table, { ...registered, ...(row && { dropping: String(row.id) }) });
}

/** Whether the catalog shows the effect of a statement. Reads table and columns together, because either may appear first. */
export async function isInEffect(session: Session, { table, effect }: DdlStep): Promise<boolean> {
  if ('unknown' in effect) return false;
  const [found] = await readCatalog(session, [table]);
  if ('table' in effect) return found === undefined;
  if ('index' in effect) {
    const index = found?.indexes.find(({ name }) => name === effect.index);
    return effect.target === null ? index === undefined : index !== undefined;
  }
  return (
    found !== undefined &&
    Object.entries(effect.columns).every(([name, type]) => (found.columns.get(name)?.type ?? null) === type)
  );
}

/** Whether an earlier attempt sent the statement, and did not only write to the registry. */
async function wasSent(context: RunContext, ddl: DdlStep): Promise<boolean> {
  if (!(await isInEffect(context.session, ddl))) return false;
  const collection = (await introspect(context.session, [ddl.table])).get(ddl.table);
  const names = 'columns' in ddl.effect ? Object.keys(ddl.effect.columns) : [];
  const registered = new Map(ddl.registered?.fields.map((field) => [field.name, field]));
  // A field that replaces another is hidden until that is dropped; a column that is not in the registry would be visible.
  return names.every((name) => {
    const expected = registered.get(name);
    const visible = collection?.fields.get(name);
    return expected?.replaces !== undefined
      ? visible === undefined
      : JSON.stringify(visible) === JSON.stringify(expected);
  });
}

/** Checked before the registry is written, because the existing table may be another one. */
async function assertTableMissing(
  session: Session,
  table: string,
  preflight: CreatePreflight | undefined,
): Promise<void> {
  if (preflight?.exists ?? (await readColumns(session, table)).size > 0) throw tableExistsError(table);
}

async function assertNoRows(session: Session, { table, effect }: DdlStep): Promise<void> {
  const columns = await readColumns(session, table);
  const [column] = columns.keys();
  if (column === undefined) return;
  const rows = await session.rows(`SELECT ${quoteIdentifier(column)} FROM ${quoteIdentifier(table)} LIMIT 1`);
  if (rows.length === 0) return;
  const [field] = 'columns' in effect ? Object.keys(effect.columns) : [];
  throw new SvcError('data_violates', `The rows of the table "${table}" would have no "${field}".`, {
    why: 'The field is required and has no default.',
    next: ['Give the field a default, or add it as optional, fill it, and then make it required.'],
  });
}

async function assertCopyAllowed(context: RunContext, { table, copies, converted }: DdlStep): Promise<void> {
  if (copies !== undefined) await assertCopyable(context.session, table, copies);
  if (converted) await assertRowsConvertible(context, table, converted);
}

/** Only an ordinary column of a type that svc creates can be copied, because the new column is one. */
async function assertCopyable(session: Session, table: string, column: string): Promise<void> {
  const [found] = await readCatalog(session, [table]);
  const { kind, type } = found?.columns.get(column) ?? {};
  if (type === undefined || (kind !== 'static' && fieldTypeOf(type).native === undefined)) return;
  const what = kind === 'static' ? 'It is static' : `It has the type ${type}, which is not one of svc's own`;
  throw new SvcError('not_supported', `The column "${table}.${column}" cannot be copied.`, {
    why: `${what}, so the new column would differ.`,
    next: [
      "Keep its name, or add the new column with raw('cassandra', …), let your application write to both, copy the values, and drop the old column.",
    ],
  });
}

/** Cassandra never accepts the name of a dropped column with an incompatible type. */
async function assertNameNotDropped(session: Session, { table, effect }: DdlStep): Promise<void> {
  if (!('columns' in effect)) return;
  const added = Object.entries(effect.columns).filter(([, type]) => type !== null);
  if (added.length !== 1) return;
  for (const [name, type] of added) {
    const [row] = await session.rows(
      'SELECT type FROM system_schema.dropped_columns WHERE keyspace_name = ? AND table_name = ? AND column_name = ?',
      [session.keyspace, table, name],
    );
    if (!row || row.type === type || COMPATIBLE.has(`${String(row.type)} ${type}`)) continue;
    throw new SvcError('not_supported', `"${table}" cannot have a field "${name}" of that type.`, {
      why: `A column of that name and the type ${String(row.type)} was dropped; Cassandra does not accept the name with the type ${type} again.`,
      next: ['Use another name, or the previous type.'],
    });
  }
}

const COMPATIBLE: ReadonlySet<string> = new Set([
  'bigint timestamp',
  'timestamp bigint',
  'ascii text',
  ...['text', 'varint', 'date', 'decimal', 'time'].map((type) => `${type} blob`),
  'list<text> list<blob>',
]);
