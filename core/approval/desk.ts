import type { Checked } from '../agent/parameters.ts';
import { checkerOf } from '../agent/parameters.ts';
import type { Tool } from '../agent/tool.ts';
import { SvcError, wordsOf } from '../errors.ts';
import type { Kernel } from '../kernel.ts';
import { anyDefinition, type RecordStore, type Versioned } from '../records.ts';
import { StoreClock } from './clock.ts';
import type { StoreHome } from './home.ts';
import { isRequestId } from './id.ts';
import { notRun } from './outcome.ts';
import {
  APPROVALS_VERSION,
  type ApprovalRow,
  approvals,
  type CallRow,
  calls,
  type DeliveryRow,
  deliveries,
  EXPIRY_SHARDS,
  type ToolRow,
  tools,
} from './rows.ts';
import { type Owner, openTables } from './tables.ts';
import { cancelled, closed, expired } from './transition.ts';
import { frozen, recordOf } from './view.ts';
import { type Seat, WaitingRoom } from './waiting.ts';

/** Between looks for requests whose own process died before their deadline; the second look comes soon. */
const SWEEP_MS = 60_000;
const SECOND_SWEEP_MS = 10_000;

export type Row = Versioned<ApprovalRow>;

export interface DeskSetup {
  readonly home: StoreHome;
  readonly kernel: Kernel;
  readonly owner: Owner;
  /** Hears of what went wrong beside a request: a tap that threw, a channel that failed. Never of a parameter. */
  readonly warn?: (message: string) => void;
  /** Hears what handlers log. */
  readonly log?: (line: string) => void;
}

/** The requests of one store: writes every change of one, tells who waits, and lets none outlive its deadline. */
export class ApprovalDesk {
  readonly home: StoreHome;
  readonly kernel: Kernel;
  readonly rows: RecordStore<ApprovalRow>;
  readonly calls: RecordStore<CallRow>;
  readonly deliveries: RecordStore<DeliveryRow>;
  readonly clock: StoreClock;
  readonly room: WaitingRoom;
  readonly warn: (message: string) => void;
  readonly log: (line: string) => void;
  /** Requests that this process has announced, each with what ends its deliveries. */
  readonly announced = new Map<string, AbortSignal>();
  /** Claims whose tools this process is running, each with what resolves when its call has ended. */
  readonly running = new Map<string, Promise<void>>();
  readonly #tools: RecordStore<ToolRow>;
  /** Tools that this process defines or has met, by digest. */
  readonly #checks = new Map<string, Tool['check']>();
  readonly #kept = new Map<string, Promise<unknown>>();
  readonly #closing = new AbortController();
  #sweeper: NodeJS.Timeout | undefined;
  #sweeping: Promise<unknown> = Promise.resolve();

  /** Makes the tables where they are missing, and decides what fell due while nobody looked. */
  static async open(setup: DeskSetup): Promise<ApprovalDesk> {
    const definitions = [approvals, calls, tools, deliveries].map((one) => anyDefinition(one as typeof approvals));
    await openTables(setup.home, { id: 'approvals', version: APPROVALS_VERSION, definitions }, setup.owner);
    const desk = new ApprovalDesk(setup);
    desk.#sweepNow(SECOND_SWEEP_MS);
    return desk;
  }

  private constructor({ home, kernel, warn = () => {}, log = () => {} }: DeskSetup) {
    this.home = home;
    this.kernel = kernel;
    this.warn = warn;
    this.log = log;
    this.rows = home.records(approvals);
    this.calls = home.records(calls);
    this.deliveries = home.records(deliveries);
    this.#tools = home.records(tools);
    this.clock = new StoreClock(() => home.now());
    this.room = new WaitingRoom(home, this.rows);
  }

  /** Aborts when the desk closes. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  async read(requestId: string): Promise<Row | undefined> {
    return isRequestId(requestId) ? this.rows.get(requestId) : undefined;
  }

  /** As `read`, with a seat that was taken before: no hint of a change since is missed. */
  async sit(requestId: string): Promise<{ readonly row: Row; readonly seat: Seat } | undefined> {
    const seat = this.room.sit(requestId);
    let row: Row | undefined;
    try {
      row = await this.read(requestId);
    } finally {
      if (!row) seat.leave();
    }
    return row && { row, seat };
  }

  /** Writes the next state of a row; undefined where somebody else wrote first, or the deadline has passed. */
  async write({ version }: Row, next: ApprovalRow, guard?: 'before the deadline'): Promise<Row | 'late' | undefined> {
    const { requestId } = next;
    const written = await this.rows.replace(requestId, version, next, guard && { before: 'expiresAt' });
    if (written === 'late') return 'late';
    if (written !== 'replaced') return undefined;
    this.room.hint(requestId);
    return { record: next, version: version + 1 };
  }

  /** Decides a request that is past its time; one that is not is left alone. */
  async expire(row: Row): Promise<void> {
    const { record } = row;
    if (record.status !== 'waiting') return;
    const now = await this.clock.asked();
    if (now < record.expiresAt.getTime()) return;
    await this.decide(row, expired(record, now));
  }

  /** As `read`, settled. */
  async meet(requestId: string): Promise<Row | undefined> {
    const row = await this.read(requestId);
    return row && this.settled(row);
  }

  /** A row as it stands once one that is past its time is decided: whoever meets it does that, if the store lets him. */
  async settled(row: Row): Promise<Row> {
    if (!this.isDue(row.record)) return row;
    try {
      await this.expire(row);
      return (await this.read(row.record.requestId)) ?? row;
    } catch (error) {
      this.warn(`An overdue approval could not be decided: ${wordsOf(error)}`);
      return row;
    }
  }

  /** By the last reading of the clock. */
  isDue({ status, expiresAt }: ApprovalRow): boolean {
    return status === 'waiting' && this.clock.until(expiresAt.getTime()) <= 0;
  }

  /** Ends a request that waits, or that was approved and has not begun, whatever is decided meanwhile. */
  async cancel(row: Row, reason: string, by: string): Promise<void> {
    for (let current: Row | undefined = row; current; current = await this.read(row.record.requestId)) {
      const { record } = current;
      const { status, body } = record;
      const now = await this.clock.now();
      if (status === 'waiting') {
        if (await this.decide(current, cancelled(record, { reason }, by, now))) return;
      } else if (status === 'approved' && body.run === 'none' && body.outcome === undefined) {
        const outcome = notRun('approval_cancelled', body, reason);
        if (await this.write(current, closed(record, outcome, by, now))) return;
      } else return;
    }
  }

  /** Cancels what an execution waits for, and what was approved and has not begun. */
  async cancelAll(executionId: string, reason: string, by: string): Promise<void> {
    let cursor: string | undefined;
    do {
      const page = await this.rows.page('byExecution', {
        equals: { executionId },
        limit: 200,
        ...(cursor !== undefined && { cursor }),
      });
      for (const row of page.records) await this.cancel(row, reason, by);
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  /** Writes a row's one and final decision, and tells the taps. */
  async decide(row: Row, next: ApprovalRow, guard?: 'before the deadline'): Promise<Row | 'late' | undefined> {
    const written = await this.write(row, next, guard);
    const { approvalDecided } = this.kernel.hooks;
    if (written !== undefined && written !== 'late' && approvalDecided.isUsed()) {
      await this.tell('A tap on approvalDecided', () => approvalDecided.promise(frozen(recordOf(next))));
    }
    return written;
  }

  /** Decides every request that is past its time, whoever waited for it. */
  async sweep(): Promise<number> {
    const due = new Date(await this.clock.asked());
    let found = 0;
    for (let shard = 0; shard < EXPIRY_SHARDS; shard++) {
      let cursor: string | undefined;
      do {
        const page = await this.rows.page('byExpiry', {
          equals: { status: 'waiting', shard },
          to: due,
          limit: 200,
          ...(cursor !== undefined && { cursor }),
        });
        await Promise.all(page.records.map((row) => this.expire(row)));
        found += page.records.length;
        cursor = this.#closing.signal.aborted ? undefined : page.cursor;
      } while (cursor !== undefined);
    }
    return found;
  }

  /** Whoever is told cannot stop what happened: that he threw is noted. */
  async tell(who: string, work: () => unknown): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.warn(`${who} threw: ${wordsOf(error)}`);
    }
  }

  /** A tool of this process: its calls need no compiled copy of what is stored. */
  define(tool: Tool): void {
    this.#checks.set(tool.digest, tool.check);
  }

  /** Stores the definition once, for those who decide elsewhere. */
  async keepTool({ digest, tag, description, schema }: Tool): Promise<void> {
    let kept = this.#kept.get(digest);
    if (!kept) {
      kept = this.#tools.insert({ digest, tag, definition: { description, schema } });
      this.#kept.set(digest, kept);
      kept.catch(() => this.#kept.delete(digest));
    }
    await kept;
  }

  /** Checks parameters against the definition the request was made under, wherever the tool is defined. */
  async check(toolDigest: string, parameters: unknown): Promise<Checked> {
    let check = this.#checks.get(toolDigest);
    if (!check) {
      const found = await this.#tools.get(toolDigest);
      if (!found) {
        throw new SvcError('approval_stale', 'The definition of the tool is not in the store.', {
          next: ['Decide without modifiedParams, or in a process that defines the agent.'],
        });
      }
      check = checkerOf(found.record.definition.schema as Parameters<typeof checkerOf>[0]);
      this.#checks.set(toolDigest, check);
    }
    return check(parameters);
  }

  /** What the tool of a request is, to who decides. */
  async definition(toolDigest: string): Promise<ToolRow['definition'] | undefined> {
    return (await this.#tools.get(toolDigest))?.record.definition;
  }

  #sweepNow(again: number): void {
    const failed = (error: unknown) => this.warn(`Overdue approvals could not be looked for: ${wordsOf(error)}`);
    this.#sweeping = this.#sweeping.then(() => this.sweep()).catch(failed);
    this.#sweeper = setTimeout(() => this.#sweepNow(SWEEP_MS), again);
    this.#sweeper.unref();
  }

  /**
   * Whoever waits in this process stops waiting; the requests keep waiting in the store. A tool that has begun comes to
   * its end, and what it gave is stored.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#sweeper);
    await this.room.close();
    while (this.running.size > 0) await Promise.all(this.running.values());
    await this.#sweeping;
  }
}
