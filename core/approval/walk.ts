import { randomUUID } from 'node:crypto';
import { isSvcError } from '../errors.ts';
import { announceDecided } from './announce.ts';
import { Context } from './context.ts';
import type { Row } from './desk.ts';
import { callDigest } from './digest.ts';
import { execute, kept, notKept } from './execute.ts';
import { Heart } from './heart.ts';
import { mayPass } from './home.ts';
import { type CallOutcome, type NotRun, notRun } from './outcome.ts';
import { insistently, type Passage, PROCESS, reasonOf } from './passage.ts';
import { rule } from './policy.ts';
import type { Outcome, Parameters } from './request.ts';
import type { ApprovalRow } from './rows.ts';
import { abandoned, asRun, cancelled, claimed, closed, effective, finished, outcomeOf } from './transition.ts';
import { recordOf } from './view.ts';
import type { Seat } from './waiting.ts';

/** What a step led to: the end, another row to look at, or a wait until something changes or `at`. */
export type Step =
  | { readonly outcome: CallOutcome }
  | { readonly again: Row | 'read' }
  | { readonly again?: undefined; readonly at?: number };

/** The steps of one call from a row to what it leads to. */
export class Walk {
  readonly #passage: Passage;
  readonly #seat: Seat;
  readonly #token = randomUUID();
  #end = () => {};
  readonly #ended = new Promise<void>((ended) => {
    this.#end = ended;
  });
  #told = false;
  #waited = false;
  #ran = false;
  #seen: { readonly version: number; readonly since: number } | undefined;

  constructor(passage: Passage, seat: Seat) {
    this.#passage = passage;
    this.#seat = seat;
  }

  end(): void {
    this.#passage.desk.running.delete(this.#token);
    this.#end();
  }

  async step(row: Row | undefined): Promise<Step> {
    const { requestId, options } = this.#passage;
    if (!row) return { outcome: { ...notRun('approval_stale', { tool: '', parameters: {} }), requestId } };
    const { record } = row;
    const outcome = outcomeOf(record);
    if (record.status === 'waiting') {
      this.#waited = true;
      return this.#waiting(row);
    }
    if (!this.#told) {
      this.#told = true;
      const { desk, routes } = this.#passage;
      if (options.onDecided) void desk.tell('onDecided of a call', () => options.onDecided?.(recordOf(record)));
      if (routes.length > 0 && this.#isNews(record))
        void desk.tell('Telling the channels', () => announceDecided(desk, record, routes));
    }
    if (outcome) return { outcome };
    switch (record.body.run) {
      case 'none':
        return this.#approved(row);
      case 'claimed':
        return this.#claimed(row);
      case 'unknown':
        if (this.#passage.tool?.idempotent) return this.#approved(row);
        return this.#close(row, 'interrupted');
      case 'done':
        throw new Error(`${requestId} ran and has no outcome`);
    }
  }

  /** Who has begun to run what was approved has told of it; of a no that was not waited for here, nobody may have. */
  #isNews({ status, body }: ApprovalRow): boolean {
    return this.#waited || status !== 'approved' || (body.run === 'none' && body.outcome === undefined);
  }

  async #waiting(row: Row): Promise<Step> {
    const { desk, options, tool } = this.#passage;
    const { record } = row;
    if (options.signal?.aborted) {
      await desk.cancel(row, reasonOf(options.signal), PROCESS);
      return { again: 'read' };
    }
    if (!tool || tool.digest !== record.body.toolDigest) {
      const gone = { reason: 'The tool has changed.', outcome: notRun('approval_stale', record.body) };
      await desk.decide(row, cancelled(record, gone, PROCESS, await desk.clock.now()));
      return { again: 'read' };
    }
    if (desk.clock.until(record.expiresAt.getTime()) <= 0) {
      await desk.expire(row);
      // The store's clock may be a little behind: it is asked again when it says that the time has come.
      const left = desk.clock.until(record.expiresAt.getTime());
      return left > 0 ? { at: performance.now() + left } : { again: 'read' };
    }
    return { at: performance.now() + desk.clock.until(record.expiresAt.getTime()) };
  }

  async #approved(row: Row): Promise<Step> {
    const { desk, tool, options, leaseMs } = this.#passage;
    const { record } = row;
    if (options.signal?.aborted) return this.#close(row, 'approval_cancelled', reasonOf(options.signal));
    const stale = await this.#staleness(record);
    if (!tool || typeof stale === 'string') return this.#close(row, 'approval_stale');
    const { agentTag, executionId, body } = record;
    const call = { agentTag, executionId, tool: body.tool, parameters: stale.parameters };
    const ruling = await rule(desk.kernel.hooks, call);
    if (ruling.verdict === 'deny') return this.#close(row, 'policy_denied', ruling.reason);
    await options.beforeRun?.();
    if (options.signal?.aborted) return { again: row };
    const claim = { token: this.#token, by: PROCESS, beat: 0, leaseMs };
    desk.running.set(this.#token, this.#ended);
    const written = await desk.write(row, claimed(record, claim, await desk.clock.now()));
    return { again: written && written !== 'late' ? written : 'read' };
  }

  async #claimed(row: Row): Promise<Step> {
    const { desk, options } = this.#passage;
    const { claim } = row.record.body;
    if (claim?.token === this.#token) return this.#run(row);
    if (claim && desk.running.has(claim.token)) return {};
    const now = performance.now();
    if (this.#seen?.version !== row.version) this.#seen = { version: row.version, since: now };
    const until = this.#seen.since + (claim?.leaseMs ?? 0);
    if (!options.resumed && now < until) return { at: until };
    const lost = await desk.write(row, abandoned(row.record, PROCESS, await desk.clock.now()));
    return { again: lost && lost !== 'late' ? lost : 'read' };
  }

  /** What is to run, or why it must not: the row is not what was approved, or not what was put to the gate. */
  async #staleness({ executionId, body }: ApprovalRow): Promise<{ readonly parameters: Parameters } | string> {
    const { tool, digest } = this.#passage;
    if (!tool || tool.digest !== body.toolDigest) return 'the tool has changed';
    const asked = callDigest(executionId, tool.digest, body.parameters);
    if (asked !== body.digest || (digest !== undefined && digest !== asked)) return 'the parameters have changed';
    const checked = tool.check(effective(body));
    if (!checked.ok) return 'the parameters do not fit';
    if (body.decision?.modifiedParams === undefined) return checked;
    const runs = callDigest(executionId, tool.digest, checked.parameters);
    return runs === body.decision.digest ? checked : 'the parameters have changed';
  }

  /** The claim is this call's, and what it was written with stands in the store: nobody else runs it. */
  async #run(row: Row): Promise<Step> {
    const { desk, tool, options, requestId } = this.#passage;
    const { record } = row;
    const checked = await this.#staleness(record);
    if (!tool || typeof checked === 'string') return this.#close(row, 'approval_stale');
    if (this.#ran) throw new Error(`${requestId} was about to run twice`);
    this.#ran = true;
    const { agentTag, executionId, body } = record;
    const heart = new Heart(desk, row);
    const signal = () => heart.signal(options.signal);
    const { toolCallId } = body;
    const approvedBy = body.decision?.by ?? '';
    const context = new Context({ agentTag, executionId, toolCallId, requestId, approvedBy, signal, log: desk.log });
    try {
      const outcome = await execute(tool, context, checked.parameters, asRun(body));
      await this.#record(await heart.stop(), outcome);
      const told = outcomeOf({ ...record, body: { ...body, outcome } });
      return { outcome: told ?? { ...outcome, requestId } };
    } finally {
      await heart.stop();
    }
  }

  /** What the store can never hold of a result, it holds of the fact that the tool ran. */
  async #record(last: Row, outcome: Outcome): Promise<void> {
    const { tool } = last.record.body;
    try {
      await this.#offer(last, kept(outcome, tool)).catch((error: unknown) => {
        if (!isSvcError(error) || mayPass(error)) throw error;
        return this.#offer(last, notKept(outcome, tool));
      });
    } catch (error) {
      if (!isSvcError(error)) throw error;
      throw error.with({ state: 'The tool ran, and its result could not be stored.' });
    }
  }

  /** Until it stands in the store, or another claim does: the tool is never run for want of an answer. */
  async #offer(last: Row, outcome: Outcome): Promise<void> {
    const { desk, requestId } = this.#passage;
    for (let row: Row | undefined = last; row?.record.body.claim?.token === this.#token; ) {
      const current: Row = row;
      if (current.record.body.run === 'done') return;
      row = await insistently(this.#passage, this.#seat, async () => {
        const next = finished(current.record, outcome, PROCESS, await desk.clock.now());
        return (await desk.write(current, next)) ? undefined : desk.read(requestId);
      });
    }
  }

  /** Over without running it. What may have run before is told as that, whatever ended it now. */
  async #close(row: Row, why: NotRun, reason?: string): Promise<Step> {
    const { desk } = this.#passage;
    const { record } = row;
    const { body } = record;
    const outcome = body.run === 'unknown' ? notRun('interrupted', asRun(body), reason) : notRun(why, body, reason);
    const written = await desk.write(row, closed(record, outcome, PROCESS, await desk.clock.now()));
    return { again: written && written !== 'late' ? written : 'read' };
  }
}
