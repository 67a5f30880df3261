import * as assert from 'node:assert/strict';
import { setImmediate as tick } from 'node:timers/promises';
import fc from 'fast-check';
import type { GateCall } from '../core/approval/call.ts';
import type { ApprovalGate } from '../core/approval/gate.ts';
import type { CallOutcome } from '../core/approval/outcome.ts';
import type { RejectionCause, ToolRun } from '../core/approval/request.ts';
import { newRequestId } from '../core/approval/request.ts';
import { isSvcError } from '../core/errors.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { approve, createGate, type ApprovalProcess, openApprovalProcess, refund, reject, compileTestTools } from './suites/approval-setup.ts';
import { test } from './kit/test.ts';

// Create, decide, edit, cancel, let time pass, kill: any order of them, on two processes, against a plain model of the
// rules. The store has a clock that only moves when it is told to.

const TIMEOUT_MS = 60_000;

/** What the rules say of one request. */
interface Expected {
  readonly call: GateCall & { readonly requestId: string; readonly executionId: string };
  readonly deadline: number;
  /** Its handler never ends: the process that runs it dies with it. */
  readonly hangs: boolean;
  status: 'waiting' | 'approved' | 'rejected' | 'cancelled';
  cause?: RejectionCause;
  amount: number;
  edited?: number;
  run: ToolRun;
  ran: number;
  outcome?: CallOutcome['status'];
}

interface Model {
  now: number;
  readonly requests: Expected[];
}

class Real {
  readonly store: MemoryStore;
  readonly started = new Map<string, number[]>();
  readonly outcomes = new Map<string, CallOutcome['status'][]>();
  processes: { office: ApprovalProcess; gate: ApprovalGate; cancels: Map<string, AbortController> }[] = [];
  #now: number;

  constructor(now: number) {
    this.#now = now;
    this.store = new MemoryStore(() => this.#now);
  }

  async start(at: number): Promise<void> {
    const office = await openApprovalProcess(this.store);
    const gate = createGate(office, this.#tools(), { humanInLoop: { approvalTimeout: TIMEOUT_MS } });
    this.processes[at] = { office, gate, cancels: new Map() };
  }

  async setClock(now: number): Promise<void> {
    this.#now = now;
    for (const { office } of this.processes) await office.service.clock.readNow();
    await this.processes[0]!.office.service.sweep();
  }

  /** A service carries the clock on for up to a second by itself: what counts is what it stored. */
  async deadlineOf(requestId: string): Promise<number> {
    for (;;) {
      const row = await this.processes[0]!.office.service.read(requestId);
      if (row) return row.record.expiresAt.getTime();
      await tick();
    }
  }

  put(at: number, call: Expected['call'], resumed: boolean): void {
    const { gate, cancels } = this.processes[at]!;
    const cancel = new AbortController();
    cancels.set(call.requestId, cancel);
    gate.call(call, { resumed, signal: cancel.signal }).then(
      ({ status }) => this.outcomes.set(call.requestId, [...(this.outcomes.get(call.requestId) ?? []), status]),
      (error) => assert.ok(isSvcError(error) && error.code === 'interrupted', String(error)),
    );
  }

  #tools() {
    return compileTestTools({
      tag: 'refund',
      requiresConfirmation: true,
      parameters: {
        order: { type: 'string', required: true },
        amount: { type: 'number', required: true, minimum: 0 },
      },
      handler: (ctx, params) => {
        const { order, amount } = params as { readonly order: string; readonly amount: number };
        const id = ctx.requestId!;
        this.started.set(id, [...(this.started.get(id) ?? []), amount]);
        return order === 'hangs' ? new Promise(() => {}) : 'paid';
      },
    });
  }
}

type Command = fc.AsyncCommand<Model, Real>;

/** Every request is, sooner or later, what the model says; the handler has run as often as it says, with what it says. */
async function agree(model: Model, real: Real): Promise<void> {
  for (let patience = 2_000; ; patience--) {
    const differences = await compared(model, real);
    if (differences.length === 0) return;
    if (patience === 0) assert.deepEqual(differences, []);
    await tick();
  }
}

async function compared({ requests }: Model, real: Real): Promise<object[]> {
  const found: object[] = [];
  for (const expected of requests) {
    const { requestId } = expected.call;
    const row = await real.processes[0]!.office.service.read(requestId);
    const is = {
      status: row?.record.status,
      cause: row?.record.body.decision?.cause,
      run: row?.record.body.run,
      started: real.started.get(requestId) ?? [],
      outcome: real.outcomes.get(requestId)?.at(-1),
    };
    const should = {
      status: expected.status,
      cause: expected.cause,
      run: expected.run,
      started: Array(expected.ran).fill(expected.edited ?? expected.amount),
      outcome: expected.outcome,
    };
    try {
      assert.deepEqual(is, should);
    } catch {
      found.push({ requestId, is, should });
    }
  }
  return found;
}

function run(expected: Expected): void {
  expected.ran += 1;
  expected.run = expected.hangs ? 'claimed' : 'done';
  if (!expected.hangs) expected.outcome = 'completed';
}

function over(expected: Expected, status: 'rejected' | 'cancelled', cause?: RejectionCause): void {
  expected.status = status;
  if (cause) expected.cause = cause;
  expected.outcome = status;
}

class Create implements Command {
  constructor(
    readonly at: number,
    readonly hangs: boolean,
    readonly amount: number,
  ) {}
  check = () => true;
  async run(model: Model, real: Real): Promise<void> {
    const parameters = { order: this.hangs ? 'hangs' : 'a', amount: this.amount };
    const call = { ...refund(parameters), requestId: newRequestId() } as Expected['call'];
    real.put(this.at, call, false);
    const { amount, hangs } = this;
    const deadline = await real.deadlineOf(call.requestId);
    assert.ok(deadline - model.now - TIMEOUT_MS <= 1_000);
    model.requests.push({ call, deadline, hangs, status: 'waiting', amount, run: 'none', ran: 0 });
    await agree(model, real);
  }
  toString = () => `create(${this.at}, ${this.amount}${this.hangs ? ', hangs' : ''})`;
}

class Decide implements Command {
  constructor(
    readonly at: number,
    readonly which: number,
    readonly yes: boolean,
    readonly edit: number | undefined,
  ) {}
  check = ({ requests }: Readonly<Model>) => requests.length > 0;
  async run(model: Model, real: Real): Promise<void> {
    const expected = model.requests[this.which % model.requests.length]!;
    const { office } = real.processes[this.at]!;
    const edit = this.edit === undefined ? undefined : { amount: this.edit };
    const said = await (this.yes ? approve(office, expected.call, edit) : reject(office, expected.call)).then(
      ({ status }) => status as string,
      (error) => error.code as string,
    );
    assert.equal(said, this.#should(expected, model.now));
    await agree(model, real);
  }
  #should(expected: Expected, now: number): string {
    const verdict = this.yes ? 'approved' : 'rejected';
    if (expected.cause === 'timeout') return 'approval_expired';
    if (expected.status !== 'waiting') {
      const same = expected.status === verdict;
      return same && (!this.yes || expected.edited === this.edit) ? verdict : 'approval_decided';
    }
    if (this.yes && this.edit !== undefined && this.edit < 0) {
      return now < expected.deadline ? 'approval_parameters_invalid' : 'approval_expired';
    }
    assert.ok(now < expected.deadline, 'what is overdue has been swept');
    if (!this.yes) {
      over(expected, 'rejected', 'human');
      return verdict;
    }
    expected.status = 'approved';
    if (this.edit !== undefined) expected.edited = this.edit;
    run(expected);
    return verdict;
  }
  toString = () => `${this.yes ? 'approve' : 'reject'}(${this.at}, ${this.which}, ${this.edit})`;
}

class Cancel implements Command {
  constructor(readonly which: number) {}
  check = ({ requests }: Readonly<Model>) => requests.length > 0;
  async run(model: Model, real: Real): Promise<void> {
    const expected = model.requests[this.which % model.requests.length]!;
    for (const { cancels } of real.processes) cancels.get(expected.call.requestId)?.abort('enough');
    if (expected.status === 'waiting') over(expected, 'cancelled');
    await agree(model, real);
  }
  toString = () => `cancel(${this.which})`;
}

class Pass implements Command {
  constructor(readonly ms: number) {}
  check = () => true;
  async run(model: Model, real: Real): Promise<void> {
    model.now += this.ms;
    await real.setClock(model.now);
    for (const expected of model.requests) {
      if (expected.status === 'waiting' && expected.deadline <= model.now) over(expected, 'rejected', 'timeout');
    }
    await agree(model, real);
  }
  toString = () => `pass(${this.ms})`;
}

/** A process dies; another goes on with everything that was under way anywhere. */
class Kill implements Command {
  constructor(readonly at: number) {}
  check = () => true;
  async run(model: Model, real: Real): Promise<void> {
    const dead = real.processes[this.at]!;
    const its = model.requests.filter(({ call }) => dead.cancels.has(call.requestId));
    // Nobody waits for what dies with it.
    dead.office.service.runningClaims.clear();
    await dead.office.service.close();
    await real.start(this.at);
    for (const expected of its) {
      real.put(this.at, expected.call, true);
      if (expected.run !== 'claimed') continue;
      expected.run = 'unknown';
      expected.outcome = 'interrupted';
    }
    await agree(model, real);
  }
  toString = () => `kill(${this.at})`;
}

test(
  'whatever happens in whatever order, a request is what the rules say and its tool has run at most once',
  async () => {
    const at = fc.nat(1);
    const which = fc.nat(9);
    const commands: fc.Arbitrary<Command>[] = [
      fc.tuple(at, fc.boolean(), fc.integer({ min: 0, max: 50 })).map((given) => new Create(...given)),
      fc
        .tuple(at, which, fc.boolean(), fc.option(fc.integer({ min: -1, max: 3 }), { nil: undefined }))
        .map(([process, one, yes, edit]) => new Decide(process, one, yes, yes ? edit : undefined)),
      which.map((one) => new Cancel(one)),
      fc.constantFrom(1, TIMEOUT_MS / 2, TIMEOUT_MS - 1, TIMEOUT_MS + 1_000).map((ms) => new Pass(ms)),
      at.map((process) => new Kill(process)),
    ];
    await fc.assert(
      fc.asyncProperty(fc.commands(commands, { maxCommands: 30 }), async (given) => {
        const now = Date.parse('2026-01-01T00:00:00Z');
        const real = new Real(now);
        await real.start(0);
        await real.start(1);
        try {
          await fc.asyncModelRun(() => ({ model: { now, requests: [] }, real }), given);
        } finally {
          for (const { office } of real.processes) {
            office.service.runningClaims.clear();
            await office.service.close();
          }
        }
      }),
      { numRuns: Number(process.env.SVC_TEST_RUNS ?? 200) },
    );
  },
  { timeoutMs: 300_000 },
);
