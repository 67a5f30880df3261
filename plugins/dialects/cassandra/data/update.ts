import type { Assignment, Condition, UpdateJob, UpdateResult } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import type { Field, FieldType } from '../../../../core/schema/model.ts';
import { assertNoSelfReads, sourceFields } from '../../shared/update-assignments.ts';
import { readCatalog } from '../catalog/read-catalog.ts';
import { keyColumns, tableKey } from '../compile/key.ts';
import { quoteIdentifier } from '../compile/names.ts';
import { isUnreadableType } from '../compile/types.ts';
import type { Row, Session } from '../connection/session.ts';
import type { Settings } from '../connection/settings.ts';
import { clusterNow } from '../records/record-store.ts';
import { transactApplied } from '../records/record-writes.ts';
import { type ScanRange, scan, tokenOf, writePage } from './scan.ts';
import { type RowCounts, ScanProgress } from './scan-progress.ts';
import {
  type Comparable,
  compareComparables,
  type EncodeContext,
  encodeValue,
  equalComparables,
  toComparable,
} from './value.ts';
import { whileBusy } from './while-busy.ts';

/** Attempts at a row that other clients keep changing. */
const MAX_TRIES = 20;

/**
 * `db.update`: updates each row in a lightweight transaction whose condition is that the columns that were read have not
 * changed. A plain UPDATE could bring back a deleted row or overwrite a concurrent write.
 */
export async function updateRows(session: Session, settings: Settings, job: UpdateJob): Promise<UpdateResult> {
  const { collection, table, set, where } = job;
  const encodeContext: EncodeContext = { types: session.types, now: await clusterNow(session) };
  const key = tableKey(collection);
  const keys = keyColumns(key);
  assertUpdatable(job, keys, encodeContext);
  await assertReadableTypes(session, job);
  const fieldOf = (name: string): Field => {
    const field = collection.fields.get(name);
    if (!field) throw new Error(`${table} has no field ${name}`);
    return field;
  };
  const read = [...new Set([...where.map(({ field }) => field), ...set.flatMap(sourceFields)])].filter(
    (name) => !keys.includes(name),
  );
  const columns = [...new Set([...keys, ...read, ...set.map(({ field }) => field)])];
  const matches = rowMatcher(where, fieldOf, encodeContext);
  const valuesOf = rowChanges(set, fieldOf, encodeContext);
  const byKey = keys.map((name) => `${quoteIdentifier(name)} = ?`).join(' AND ');
  const selectRow = `SELECT ${columns.map(quoteIdentifier).join(', ')} FROM ${quoteIdentifier(table)} WHERE ${byKey}`;

  /** `same` if the row already has the values; undefined if it does not match. */
  const updateRow = async (first: Row): Promise<'changed' | 'same' | undefined> => {
    let row: Row | undefined = first;
    for (let left = MAX_TRIES; row !== undefined && matches(row); left -= 1) {
      const values = valuesOf(row);
      if (values === undefined) return 'same';
      const keyValues = keys.map((name) => first[name]);
      // A condition on NULL is true for a deleted row too.
      const guards = read.some((name) => row?.[name] != null)
        ? read.filter((name) => fieldOf(name).type !== 'array')
        : [];
      const hasGuard = guards.some((name) => row?.[name] != null);
      const condition = hasGuard ? guards.map((name) => `${quoteIdentifier(name)} = ?`).join(' AND ') : 'EXISTS';
      const names = Object.keys(values);
      const cql = `UPDATE ${quoteIdentifier(table)} SET ${names.map((name) => `${quoteIdentifier(name)} = ?`).join(', ')} WHERE ${byKey} IF ${condition}`;
      const parameters = [
        ...Object.values(values),
        ...keyValues,
        ...(hasGuard ? guards.map((name) => row?.[name] ?? null) : []),
      ];
      const applied = await whileBusy(() =>
        transactApplied(session, { cql, values: parameters }, async () => {
          const [found] = await session.readSerial(selectRow, keyValues);
          return found !== undefined && valuesOf(found) === undefined ? true : undefined;
        }),
      );
      if (applied) return 'changed';
      if (left === 0) throw contendedRow(table);
      [row] = await session.readSerial(selectRow, keyValues);
    }
    return undefined;
  };

  const progress = new ScanProgress(session, settings, table, job.key, false);
  const { cursor, ...counts } = await progress.load();
  /** Counts of the partition at the cursor, which a resumed scan processes and counts again. */
  let openPartition: RowCounts = { matched: 0, modified: 0 };
  const closePartition = () => {
    counts.matched += openPartition.matched;
    counts.modified += openPartition.modified;
    openPartition = { matched: 0, modified: 0 };
  };
  const fullRange: ScanRange = { table, partition: key.partition, selected: columns.map(quoteIdentifier) };
  const updateRange = async (range: ScanRange, isRescan: boolean) => {
    let last: string | undefined;
    for await (const page of scan(session, range)) {
      assertNotInterrupted(settings, counts.modified + openPartition.modified);
      if (page.cursor !== undefined && page.cursor !== last) closePartition();
      last = page.cursor ?? last;
      await writePage(page, settings.concurrency, async (row) => {
        if (keys.some((name) => row[name] === null)) return false; // a partition with static columns only
        const outcome = await updateRow(row);
        const target = job.usesNow && tokenOf(row) === last ? openPartition : counts;
        if (outcome === 'changed') target.modified += 1;
        if (outcome === 'changed' || (outcome === 'same' && !isRescan)) target.matched += 1;
        return outcome === 'changed';
      });
      if (!isRescan) await progress.save(page.cursor, counts);
    }
    closePartition();
  };
  await progress.releaseOnFailure(async () => {
    await updateRange({ ...fullRange, ...(cursor !== undefined && { from: cursor }) }, false);
    // Rows inserted before the position since the interrupted attempt, unless updated rows look the same.
    if (cursor !== undefined && !job.usesNow) await updateRange({ ...fullRange, to: cursor }, true);
  });
  await progress.finish();
  return counts;
}

function assertNotInterrupted({ signal }: Settings, modified: number): void {
  if (!signal?.aborted) return;
  throw new SvcError('interrupted', 'The update was interrupted.', {
    state: `${modified} rows were updated.`,
    next: ['Run the same update again: it resumes from there.'],
  });
}

function contendedRow(table: string): SvcError {
  return new SvcError('check_failed', `A row of "${table}" changes too often.`, {
    why: `Another client changed it before each of ${MAX_TRIES} attempts.`,
    next: ['Run the same update again: it resumes from there.'],
  });
}

/** Rejects unencodable values before the first row is read. */
function assertUpdatable(
  { table, set, collection }: UpdateJob,
  keys: readonly string[],
  encodeContext: EncodeContext,
): void {
  assertNoSelfReads(set);
  const invalid = (code: 'not_supported' | 'data_violates', message: string, why: string) =>
    new SvcError(code, message, { why, state: 'Nothing was changed.' });
  for (const assignment of set) {
    const { field: name } = assignment;
    if (keys.includes(name)) {
      throw invalid('not_supported', `The key "${table}.${name}" cannot be changed.`, 'The key identifies the row.');
    }
    const field = collection.fields.get(name);
    if (!field || !('value' in assignment)) continue;
    if (assignment.value === null && field.required) {
      throw invalid('data_violates', `The field "${table}.${name}" cannot be null.`, 'It is required.');
    }
    encodeValue(assignment.value, field, encodeContext);
  }
}

/** Rejects columns of tables that svc did not create whose type the model only approximates. */
async function assertReadableTypes(session: Session, { table, set, where }: UpdateJob): Promise<void> {
  const [found] = await readCatalog(session, [table]);
  const unusable = (name: string, why: string) =>
    new SvcError('not_supported', `db.update cannot use the column "${table}.${name}".`, {
      why,
      state: 'Nothing was changed.',
      next: ["Use CQL: raw('cassandra', …) in a migration, or your own driver."],
    });
  for (const { field } of set) {
    const { kind, type = '' } = found?.columns.get(field) ?? {};
    if (kind === 'static') throw unusable(field, 'It is static: its value belongs to the partition, not to a row.');
    if (type === 'varint' || isUnreadableType(type)) throw unusable(field, unsupportedType(type));
  }
  for (const condition of where) {
    const type = found?.columns.get(condition.field)?.type ?? '';
    if (condition.value !== null && isUnreadableType(type)) throw unusable(condition.field, unsupportedType(type));
  }
}

const unsupportedType = (type: string): string => `It has the type ${type}, whose values svc cannot write.`;

/** Whether a row meets all conditions. */
function rowMatcher(
  where: readonly Condition[],
  fieldOf: (name: string) => Field,
  encodeContext: EncodeContext,
): (row: Row) => boolean {
  const tests = where.map((condition) => {
    const field = fieldOf(condition.field);
    const encode = (value: Json): Comparable => toComparable(encodeValue(value, field, encodeContext), field);
    const test = conditionTest(condition, encode);
    return (row: Row) => test(toComparable(row[field.name], field));
  });
  return (row) => tests.every((test) => test(row));
}

function conditionTest(condition: Condition, encode: (value: Json) => Comparable): (found: Comparable) => boolean {
  if (condition.operator === 'in') {
    const values = condition.value.map(encode);
    return (found) => values.some((one) => equalComparables(found, one));
  }
  const { operator } = condition;
  const wanted = encode(condition.value);
  if (operator === 'eq') return (found) => equalComparables(found, wanted);
  if (operator === 'ne') return (found) => !equalComparables(found, wanted);
  const order = (found: Comparable) => compareComparables(found, wanted);
  switch (operator) {
    case 'gt':
      return (found) => found !== null && order(found) > 0;
    case 'gte':
      return (found) => found !== null && order(found) >= 0;
    case 'lt':
      return (found) => found !== null && order(found) < 0;
    case 'lte':
      return (found) => found !== null && order(found) <= 0;
  }
}

/** The values to write to a row; undefined if it already has them. A new time alone is not a change, unless only times are set. */
function rowChanges(
  set: readonly Assignment[],
  fieldOf: (name: string) => Field,
  encodeContext: EncodeContext,
): (row: Row) => Readonly<Record<string, unknown>> | undefined {
  const timeAssignments = set.filter((assignment) => 'now' in assignment);
  const others = set.filter((assignment) => !('now' in assignment));
  const times = timeAssignments.map(({ field }) => [field, encodeValue('now', fieldOf(field), encodeContext)] as const);
  return (row) => {
    const values = others.map((assignment) => {
      const field = fieldOf(assignment.field);
      return { field, value: encodeValue(assignedValue(assignment, row, fieldOf), field, encodeContext) };
    });
    const changes = values.some(
      ({ field, value }) => !equalComparables(toComparable(row[field.name], field), toComparable(value, field)),
    );
    const outdated =
      others.length === 0 &&
      times.some(
        ([name, value]) =>
          !equalComparables(toComparable(row[name], fieldOf(name)), toComparable(value, fieldOf(name))),
      );
    if (!changes && !outdated) return undefined;
    return Object.fromEntries([...values.map(({ field, value }) => [field.name, value] as const), ...times]);
  };
}

/** NULL counts as empty. */
function assignedValue(assignment: Assignment, row: Row, fieldOf: (name: string) => Field): Json {
  if ('value' in assignment) return assignment.value;
  if ('now' in assignment) return 'now';
  const text = assignment.concat
    .map((part) => ('literal' in part ? part.literal : row[part.field] == null ? '' : String(row[part.field])))
    .join('');
  const field = fieldOf(assignment.field);
  switch (field.type) {
    case 'integer':
    case 'smallint':
    case 'bigint':
      return toInteger(text, field);
    case 'enum':
      if (field.enumValues?.includes(text)) return text;
      throw invalidConcatError(text, field);
    default:
      return text;
  }
}

const BITS: Readonly<Partial<Record<FieldType, number>>> = { smallint: 16, integer: 32, bigint: 64 };

function toInteger(text: string, field: Field): Json {
  if (!/^-?\d+$/.test(text) || BigInt.asIntN(BITS[field.type] ?? 64, BigInt(text)) !== BigInt(text)) {
    throw invalidConcatError(text, field);
  }
  return field.type === 'bigint' ? text : Number(text);
}

function invalidConcatError(text: string, field: Field): SvcError {
  const what = field.type === 'enum' ? 'one of its values' : `a valid ${field.type}`;
  return new SvcError('data_violates', `The result of $CONCAT for "${field.name}" is not ${what} in a row.`, {
    why: `It is ${JSON.stringify(text)}.`,
  });
}
