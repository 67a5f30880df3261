import type { Segment } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import type { RecordWrite } from '../../../core/records.ts';
import { engineColumns, writesElapsed } from '../../sql/record-write.ts';
import { isUsers } from '../../sql/text.ts';
import type { RecordGrammar } from '../../sql/value.ts';
import { readBack, writeText } from './records.ts';
import type { Traits } from './traits.ts';

const MOST_SEGMENTS = 200;
const MOST_CHARACTERS = 256 * 1024;

export interface PacketPlace {
  readonly grammar: RecordGrammar;
  /** Puts the settings of the session back as they were when it began. */
  restore(autocommit: 0 | 1): string;
  /** A condition: this session holds the lock. */
  readonly lockHeld: string;
  /** The text of a statement where nothing has to be asked first: how it most likely goes. */
  textOf(run: Json): string | undefined;
  readonly block: Traits['block'];
}

/** Segments that go to the server as one text. */
export interface Packet {
  readonly segments: readonly Segment[];
  readonly text: string;
  /** The server reads all of it before it begins: one statement that it does not understand, and nothing is run. */
  readonly block: boolean;
  /** Writes whose engine columns the last results of the text tell, a result for each group. */
  readonly told: readonly (readonly RecordWrite[])[];
}

/*
 * DDL commits what is open before it begins, itself included when it fails. So a write that stands between two DDL
 * statements ("this one is done, that one starts") needs no commit of its own: it becomes durable at the very moment
 * after which the next statement can take effect. The server stops a packet at the first statement that fails; marks in
 * variables of the session tell how far it came, and a write that lost is made to fail. A block is answered once, and not
 * statement by statement: those answers cost both sides as much as the writes.
 */

/**
 * A packet of the first segments, up to the next one that has to be asked for. `elapsedMs`: since the first one's
 * migration began. `apart`: never as a block.
 */
export function packetOf(
  place: PacketPlace,
  segments: readonly Segment[],
  epoch: number,
  elapsedMs: number,
  apart: boolean,
): Packet {
  const taken: Segment[] = [];
  const parts: string[] = [guarded(place, segments)];
  let length = 0;
  /** Writes stand there that nothing has committed yet. */
  let open = false;
  for (const segment of segments) {
    if (taken.length === MOST_SEGMENTS) break;
    const last = taken.at(-1);
    // Texts of a user may take long: a run that is to stop stops before and behind each.
    if (last && (isAsked(place, segment) || hasUsers(segment) || hasUsers(last))) break;
    const part = segmentText(place, segment, epoch, taken.length, open);
    if (taken.length > 0 && length + part.length > MOST_CHARACTERS) break;
    length += part.length;
    parts.push(part);
    taken.push(segment);
    open = isOpen(segment);
  }
  const told = groups(taken.flatMap(({ writes }) => writes));
  const reads = told.flatMap((writes) => readBack(place.grammar, writes) ?? []);
  // A block would end where a text of a user says so.
  const block = apart || taken.some(hasUsers) ? undefined : place.block;
  const statements = [...parts, 'COMMIT', 'SET autocommit = 1'].join('\n;');
  const text = [begin(elapsedMs), block?.(statements) ?? statements, ...reads].join('\n;');
  return { segments: taken, text, block: block !== undefined, told };
}

export const hasUsers = ({ statements }: Segment): boolean => statements.some(({ run }) => isUsers(run));

/** What its statement has to send depends on the catalog. */
export function isAsked({ textOf }: PacketPlace, { statements }: Segment): boolean {
  return statements.some(({ run }) => textOf(run) === undefined);
}

/** Nothing but writes: whatever comes next commits them. */
function isOpen({ transactional, statements }: Segment): boolean {
  return transactional && statements.length === 0;
}

/** How many segments are committed when the one at `failed` was rolled back: one with statements begins with COMMIT. */
export function durable(segments: readonly Segment[], failed: number): number {
  const stopped = segments[failed];
  if (stopped && !isOpen(stopped)) return failed;
  let count = failed;
  for (let before = segments[count - 1]; before && isOpen(before); before = segments[count - 1]) count -= 1;
  return count;
}

/** @svc_at is -1 until it is known that the lock is held. */
function begin(elapsedMs: number): string {
  const began = `SYSDATE(6) - INTERVAL ${Math.round(elapsedMs * 1000)} MICROSECOND`;
  return `SET autocommit = 0, @svc_done = 0, @svc_at = -1, @svc_began = ${began}`;
}

function guarded({ lockHeld }: PacketPlace, segments: readonly Segment[]): string {
  const writes = segments.some((segment) => segment.writes.length > 0);
  return `SET @svc_at = ${writes ? `0 * ${failing(`NOT ${lockHeld}`)}` : '0'}`;
}

/** 1, or an error where the condition holds. */
const failing = (condition: string): string => `POW(10, 400 * (${condition}))`;
/** In MariaDB's DO an error is none. */
const guard = (condition: string): string => `SET @svc_ok = ${failing(condition)}`;

function segmentText(place: PacketPlace, segment: Segment, epoch: number, index: number, open: boolean): string {
  const { transactional, statements, writes } = segment;
  const users = hasUsers(segment);
  const settled = users ? [place.restore(0), guard(`NOT ${place.lockHeld}`)] : [];
  const done = `SET @svc_done = ${index + 1}`;
  if (!transactional) {
    const [statement, ...more] = statements;
    if (!statement || more.length > 0 || writes.length > 0)
      throw new Error('a step outside a transaction is one statement');
    const text = place.textOf(statement.run) ?? '';
    if (!users) return [text, done].join('\n;');
    // What a user runs outside of transactions need not commit what is open, nor itself.
    return ['COMMIT', text, 'COMMIT', done, 'UNLOCK TABLES', ...settled].join('\n;');
  }
  const began = writesElapsed(segment) ? ', @svc_began = SYSDATE(6)' : '';
  const parts = open && statements.length > 0 ? ['COMMIT', 'SET @svc_at = 0'] : [];
  for (const [at, { run }] of statements.entries()) {
    const found = place.textOf(run);
    if (found === undefined) throw new Error('this step cannot be in a transaction');
    // A text of a user may end in a comment.
    parts.push(found, `SET @svc_at = ${at + 1}`);
  }
  parts.push(...settled);
  // The epoch stays until the transaction ends that asked for it: what goes on with one need not ask again.
  const asking = open && statements.length === 0 ? undefined : epoch;
  for (const [at, write] of writes.entries()) {
    parts.push(writeText(place.grammar, write, asking));
    if (write.version !== undefined && at < writes.length - 1) parts.push(guard('ROW_COUNT() <> 1'));
  }
  const last = writes.at(-1)?.version === undefined ? '' : ` * ${failing('ROW_COUNT() <> 1')}`;
  if (statements.length === 0) return [...parts, `${done}${last}${began}`].join('\n;');
  // Only what is committed counts as done.
  if (last !== '') parts.push(guard('ROW_COUNT() <> 1'));
  return [...parts, 'COMMIT', `${done}, @svc_at = 0${began}`].join('\n;');
}

/** Writes with columns that the engine fills in, by definition. */
export function groups(writes: readonly RecordWrite[]): RecordWrite[][] {
  const found = new Map<string, RecordWrite[]>();
  for (const write of writes) {
    if (engineColumns(write).length === 0) continue;
    const { collection } = write.definition;
    found.set(collection, [...(found.get(collection) ?? []), write]);
  }
  return [...found.values()];
}
