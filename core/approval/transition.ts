import { canonicalJson } from '../json.ts';
import { type CallOutcome, notRun, repeated, timedOut, unrepeated } from './outcome.ts';
import type { ApprovalEvent, Outcome, Parameters } from './request.ts';
import type { ApprovalBody, ApprovalRow, Claim, StoredDecision } from './rows.ts';

/*
 * The life of a request, each step a pure function from a row to the next. Whoever takes one writes it by
 * compare-and-set on the row it was worked out from.
 */

export interface Verdict {
  readonly approved: boolean;
  readonly by: string;
  readonly from: string;
  readonly reason?: string;
  readonly modifiedParams?: Parameters;
  /** Of the parameters that are to run, where they were modified. */
  readonly digest?: string;
}

/** A human decided. The clock is at most a second old: what is written is never after the deadline it was tested on. */
export function decided(row: ApprovalRow, verdict: Verdict, now: number) {
  const { approved, by, from, reason, modifiedParams, digest } = verdict;
  const at = iso(Math.min(now, row.expiresAt.getTime() - 1));
  const decision: StoredDecision = {
    at,
    by,
    ...(!approved && { cause: 'human' }),
    ...(reason !== undefined && { reason }),
    ...(modifiedParams !== undefined && { modifiedParams }),
    ...(digest !== undefined && { digest }),
  };
  const type = approved ? 'approved' : 'rejected';
  return next(row, { status: type }, { decision }, { type, at, by, from, ...(!approved && { as: 'human' }) });
}

const SYSTEM = 'system';

export function expired(row: ApprovalRow, now: number): ApprovalRow {
  const at = iso(Math.max(now, row.expiresAt.getTime()));
  const decision: StoredDecision = { at, by: SYSTEM, cause: 'timeout' };
  return next(row, { status: 'rejected' }, { decision }, { type: 'rejected', at, by: SYSTEM, as: 'timeout' });
}

export function cancelled(
  row: ApprovalRow,
  { reason, outcome }: { readonly reason: string; readonly outcome?: Outcome },
  by: string,
  now: number,
): ApprovalRow {
  const at = iso(now);
  const body = { decision: { at, by, reason }, ...(outcome && { outcome: unrepeated(outcome) }) };
  return next(row, { status: 'cancelled' }, body, { type: 'cancelled', at, by });
}

/** A policy's no to a call that was not yet asked of anybody: kept, so that it can be listed. */
export function denied(row: ApprovalRow, reason: string, now: number): ApprovalRow {
  const at = iso(now);
  const decision: StoredDecision = { at, by: 'policy', cause: 'policy', reason };
  return next(row, { status: 'rejected' }, { decision }, { type: 'rejected', at, by: 'policy', as: 'policy' });
}

export function claimed(row: ApprovalRow, claim: Claim, now: number): ApprovalRow {
  return next(row, {}, { run: 'claimed', claim }, { type: 'claimed', at: iso(now), by: claim.by });
}

/** Still running: the same row but for a beat that has moved. */
export function beaten(row: ApprovalRow, claim: Claim): ApprovalRow {
  return { ...row, body: { ...row.body, claim: { ...claim, beat: claim.beat + 1 } } };
}

/** Whoever ran it is dead or silent: nobody can say whether the tool took effect. */
export function abandoned(row: ApprovalRow, by: string, now: number): ApprovalRow {
  return next(row, {}, { run: 'unknown' }, { type: 'interrupted', at: iso(now), by });
}

/** The tool ended. What the agent was told already stays what it was told. */
export function finished(row: ApprovalRow, outcome: Outcome, by: string, now: number): ApprovalRow {
  const told = row.body.outcome ?? unrepeated(outcome);
  return next(row, {}, { run: 'done', outcome: told }, { type: 'finished', at: iso(now), by, as: outcome.status });
}

/** Over without a run of the tool that anybody knows the end of: a claim that came to nothing is taken back. */
export function closed(row: ApprovalRow, outcome: Outcome, by: string, now: number): ApprovalRow {
  const run = row.body.run === 'claimed' ? 'none' : row.body.run;
  return next(row, {}, { run, outcome: unrepeated(outcome) }, { type: 'closed', at: iso(now), by, as: outcome.status });
}

function next(
  row: ApprovalRow,
  columns: Partial<Pick<ApprovalRow, 'status'>>,
  body: Partial<ApprovalBody>,
  event: ApprovalEvent,
): ApprovalRow {
  return { ...row, ...columns, body: { ...row.body, ...body, events: [...row.body.events, event] } };
}

/** What the agent is to be told; undefined while the call is not over. */
export function outcomeOf({ requestId, status, body }: ApprovalRow): CallOutcome | undefined {
  const { decision } = body;
  const outcome = toldOutcome(body);
  switch (status) {
    case 'waiting':
      return undefined;
    case 'cancelled':
      return { ...(outcome ?? notRun('approval_cancelled', body, decision?.reason)), requestId };
    case 'rejected':
      if (decision?.cause === 'timeout') return { ...timedOut(body, body.timeoutMs), requestId };
      return {
        ...notRun(decision?.cause === 'policy' ? 'policy_denied' : 'approval_rejected', body, decision?.reason),
        requestId,
      };
    case 'approved': {
      if (!outcome) return undefined;
      const changed = changedParameters(body);
      return { ...outcome, ...(changed.length > 0 && { changed }), requestId };
    }
  }
}

/** Parameters as they are to run, before they are checked: merged key by key into an object without prototype. */
export function effective({ parameters, decision }: Pick<ApprovalBody, 'parameters' | 'decision'>): Parameters {
  return Object.assign(Object.create(null), parameters, decision?.modifiedParams) as Parameters;
}

/** A call as the tool runs it: whoever looks for what it did looks for these parameters. */
export function asRun(body: ApprovalBody): Pick<ApprovalBody, 'tool' | 'parameters'> {
  return { tool: body.tool, parameters: { ...effective(body) } };
}

/** How it ended, as whoever called is told: what ran, or may have, with the parameters that it ran with. */
export function toldOutcome(body: ApprovalBody): Outcome | undefined {
  const { outcome } = body;
  const hasRun = outcome?.status === 'failed' || outcome?.status === 'interrupted';
  return outcome && repeated(outcome, hasRun ? asRun(body) : body);
}

function changedParameters({ parameters, decision }: ApprovalBody): string[] {
  const modified = decision?.modifiedParams ?? {};
  const same = (name: string) =>
    Object.hasOwn(parameters, name) && canonicalJson(parameters[name]) === canonicalJson(modified[name]);
  return Object.keys(modified).filter((name) => !same(name));
}

const iso = (time: number): string => new Date(time).toISOString();
