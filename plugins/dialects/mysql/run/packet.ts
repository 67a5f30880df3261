import { endsElapsed, type RecordWrite } from '../../../../core/records.ts';
import { engineFilledColumns, type RecordGrammar } from '../../sql/record-values.ts';
import { isRaw } from '../../sql/statement.ts';
import type { MysqlSegment, MysqlStep } from '../compile/step.ts';
import { readBackSql, recordWriteSql } from '../records/record-writes.ts';
import type { Traits } from '../variant.ts';

const MAX_SEGMENTS = 200;
const MAX_CHARACTERS = 256 * 1024;

export interface PacketContext {
  readonly grammar: RecordGrammar;
  /** Restores the settings that the session began with. */
  restore(autocommit: 0 | 1): string;
  /** An SQL condition: this session has the migration lock. */
  readonly lockHeld: string;
  /** The SQL of a statement in its most likely form; undefined if it depends on the catalog. */
  sqlOf(step: MysqlStep): string | undefined;
  readonly compoundStatement: Traits['compoundStatement'];
}

/** Segments that are sent to the server as one text. */
export interface Packet {
  readonly segments: readonly MysqlSegment[];
  readonly text: string;
  /** The server parses all of it before it runs any: after a syntax error, nothing has run. */
  readonly isCompound: boolean;
  /** Groups of writes. The last results of the text are their columns that the engine filled in. */
  readonly readBack: readonly (readonly RecordWrite[])[];
}

/*
 * DDL commits the open transaction before it starts, even if it fails. So a write between two DDL statements ("this one is
 * done, that one starts") needs no separate commit: it becomes durable right before the next statement can take effect.
 * The server stops a packet at the first statement that fails. Session variables record the progress, and a write that
 * matches no row fails on purpose. A compound statement has one response instead of one per statement, which saves as
 * much time as the writes take.
 */

/**
 * A packet of the first segments, up to the next deferred one. `elapsedMs`: since the start of the first one's migration.
 * `isPlain`: never a compound statement.
 */
export function createPacket(
  context: PacketContext,
  segments: readonly MysqlSegment[],
  epoch: number,
  elapsedMs: number,
  isPlain: boolean,
): Packet {
  const packed: MysqlSegment[] = [];
  const parts: string[] = [lockGuard(context, segments)];
  let length = 0;
  /** The last segment has writes that nothing has committed yet. */
  let isOpen = false;
  for (const segment of segments) {
    if (packed.length === MAX_SEGMENTS) break;
    const last = packed.at(-1);
    // A raw statement may take long: a cancelled run stops before or after it.
    if (last && (isDeferred(context, segment) || hasRaw(segment) || hasRaw(last))) break;
    const part = segmentSql(context, segment, epoch, packed.length, isOpen);
    if (packed.length > 0 && length + part.length > MAX_CHARACTERS) break;
    length += part.length;
    parts.push(part);
    packed.push(segment);
    isOpen = isUncommitted(segment);
  }
  const readBack = groupWrites(packed.flatMap(({ writes }) => writes));
  const reads = readBack.flatMap((writes) => readBackSql(context.grammar, writes) ?? []);
  // Raw SQL could end the compound statement.
  const compound = isPlain || packed.some(hasRaw) ? undefined : context.compoundStatement;
  const statements = [...parts, 'COMMIT', 'SET autocommit = 1'].join('\n;');
  const text = [begin(elapsedMs), compound?.(statements) ?? statements, ...reads].join('\n;');
  return { segments: packed, text, isCompound: compound !== undefined, readBack };
}

export const hasRaw = ({ statements }: MysqlSegment): boolean => statements.some(isRaw);

/** The SQL of its statement depends on the catalog. */
export function isDeferred({ sqlOf }: PacketContext, { statements }: MysqlSegment): boolean {
  return statements.some(({ run }) => sqlOf(run) === undefined);
}

/** Only writes, which the next segment commits. */
function isUncommitted({ transactional, statements }: MysqlSegment): boolean {
  return transactional && statements.length === 0;
}

/** The number of committed segments after the one at `failed` was rolled back. One with statements begins with COMMIT. */
export function countCommitted(segments: readonly MysqlSegment[], failed: number): number {
  const segment = segments[failed];
  if (segment && !isUncommitted(segment)) return failed;
  let count = failed;
  for (let before = segments[count - 1]; before && isUncommitted(before); before = segments[count - 1]) count -= 1;
  return count;
}

/** @svc_at is -1 until the lock is checked. */
function begin(elapsedMs: number): string {
  const startedAt = `SYSDATE(6) - INTERVAL ${Math.round(elapsedMs * 1000)} MICROSECOND`;
  return `SET autocommit = 0, @svc_done = 0, @svc_at = -1, @svc_started_at = ${startedAt}`;
}

function lockGuard({ lockHeld }: PacketContext, segments: readonly MysqlSegment[]): string {
  const writes = segments.some((segment) => segment.writes.length > 0);
  return `SET @svc_at = ${writes ? `0 * ${failIf(`NOT ${lockHeld}`)}` : '0'}`;
}

/** 1, or an error if the condition is true. */
const failIf = (condition: string): string => `POW(10, 400 * (${condition}))`;
/** SET, because MariaDB's DO ignores errors. */
const guardSql = (condition: string): string => `SET @svc_ok = ${failIf(condition)}`;

function segmentSql(
  context: PacketContext,
  segment: MysqlSegment,
  epoch: number,
  index: number,
  isOpen: boolean,
): string {
  const { transactional, statements, writes } = segment;
  const isRaw = hasRaw(segment);
  const restore = isRaw ? [context.restore(0), guardSql(`NOT ${context.lockHeld}`)] : [];
  const done = `SET @svc_done = ${index + 1}`;
  if (!transactional) {
    const [statement, ...more] = statements;
    if (!statement || more.length > 0 || writes.length > 0)
      throw new Error('a step outside a transaction is one statement');
    const sql = context.sqlOf(statement.run) ?? '';
    if (!isRaw) return [sql, done].join('\n;');
    // A raw statement does not always commit the open transaction or itself.
    return ['COMMIT', sql, 'COMMIT', done, 'UNLOCK TABLES', ...restore].join('\n;');
  }
  const startedAt = endsElapsed(segment) ? ', @svc_started_at = SYSDATE(6)' : '';
  const parts = isOpen && statements.length > 0 ? ['COMMIT', 'SET @svc_at = 0'] : [];
  for (const [at, { run }] of statements.entries()) {
    const sql = context.sqlOf(run);
    if (sql === undefined) throw new Error('this step cannot be in a transaction');
    // A raw statement may end in a comment, so the separator begins with a newline.
    parts.push(sql, `SET @svc_at = ${at + 1}`);
  }
  parts.push(...restore);
  // The first write locks the epoch until its transaction ends: later writes of it do not check again.
  const checkedEpoch = isOpen && statements.length === 0 ? undefined : epoch;
  for (const [at, write] of writes.entries()) {
    parts.push(recordWriteSql(context.grammar, write, checkedEpoch));
    if (write.version !== undefined && at < writes.length - 1) parts.push(guardSql('ROW_COUNT() <> 1'));
  }
  const last = writes.at(-1)?.version === undefined ? '' : ` * ${failIf('ROW_COUNT() <> 1')}`;
  if (statements.length === 0) return [...parts, `${done}${last}${startedAt}`].join('\n;');
  // Only a committed segment counts as done.
  if (last !== '') parts.push(guardSql('ROW_COUNT() <> 1'));
  return [...parts, 'COMMIT', `${done}, @svc_at = 0${startedAt}`].join('\n;');
}

/** Writes with columns that the engine fills in, grouped by record definition. */
export function groupWrites(writes: readonly RecordWrite[]): RecordWrite[][] {
  const found = new Map<string, RecordWrite[]>();
  for (const write of writes) {
    if (engineFilledColumns(write).length === 0) continue;
    const { collection } = write.definition;
    found.set(collection, [...(found.get(collection) ?? []), write]);
  }
  return [...found.values()];
}
