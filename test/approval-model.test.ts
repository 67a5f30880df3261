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
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  approve,
  compileTestTools,
  createGate,
  openApprovalProcess,
  refund,
  reject,
} from './suites/approval-setup.ts';

// Creates, decides, edits, cancels, moves time and kills in any order, on two processes, and compares with a model of the
// rules. The clock of the store is controlled by the test.

const TIMEOUT_MS = 60_000;

/** The expected state of one request. */
interface Expected {
  readonly call: GateCall & { readonly requestId: string; readonly executionId: string };
  readonly deadline: number;
  /** Its handler never ends before its process dies. */
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
  processes: { app: ApprovalProcess; gate: ApprovalGate; cancels: Map<string, AbortController> }[] = [];
  #now: number;

  constructor(now: number) {
    this.#now = now;
    this.store = new MemoryStore(() => this.#now);
  }

  async start(at: number): Promise<void> {
    const app = await openApprovalProcess(this.store);
    const gate = createGate(app, this.#tools(), { humanInLoop: { approvalTimeout: TIMEOUT_MS } });
    this.processes[at] = { app, gate, cancels: new Map() };
  }

  async setClock(now: number): Promise<void> {
    this.#now = now;
    for (const { app } of this.processes) await app.service.clock.readNow();
    await this.processes[0]!.app.service.sweep();
  }

  /** Returns the stored deadline: a service extrapolates its clock for up to a second. */
  async deadlineOf(requestId: string): Promise<number> {
    for (;;) {
      const row = await this.processes[0]!.app.service.read(requestId);
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

/** Waits until every request and its runs match the model. */
async function assertMatches(model: Model, real: Real): Promise<void> {
  for (let attempts = 2_000; ; attempts--) {
    const differences = await differencesOf(model, real);
    if (differences.length === 0) return;
    if (attempts === 0) assert.deepEqual(differences, []);
    await tick();
  }
}

async function differencesOf({ requests }: Model, real: Real): Promise<object[]> {
  const found: object[] = [];
  for (const expected of requests) {
    const { requestId } = expected.call;
    const row = await real.processes[0]!.app.service.read(requestId);
    const actual = {
      status: row?.record.status,
      cause: row?.record.body.decision?.cause,
      run: row?.record.body.run,
      started: real.started.get(requestId) ?? [],
      outcome: real.outcomes.get(requestId)?.at(-1),
    };
    const wanted = {
      status: expected.status,
      cause: expected.cause,
      run: expected.run,
      started: Array(expected.ran).fill(expected.edited ?? expected.amount),
      outcome: expected.outcome,
    };
    try {
      assert.deepEqual(actual, wanted);
    } catch {
      found.push({ requestId, actual, wanted });
    }
  }
  return found;
}

function run(expected: Expected): void {
  expected.ran += 1;
  expected.run = expected.hangs ? 'claimed' : 'done';
  if (!expected.hangs) expected.outcome = 'completed';
}

function close(expected: Expected, status: 'rejected' | 'cancelled', cause?: RejectionCause): void {
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
    await assertMatches(model, real);
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
    const { app } = real.processes[this.at]!;
    const edit = this.edit === undefined ? undefined : { amount: this.edit };
    const result = await (this.yes ? approve(app, expected.call, edit) : reject(app, expected.call)).then(
      ({ status }) => status as string,
      (error) => error.code as string,
    );
    assert.equal(result, this.#expectedResult(expected, model.now));
    await assertMatches(model, real);
  }
  #expectedResult(expected: Expected, now: number): string {
    const decision = this.yes ? 'approved' : 'rejected';
    if (expected.cause === 'timeout') return 'approval_expired';
    if (expected.status !== 'waiting') {
      const same = expected.status === decision;
      return same && (!this.yes || expected.edited === this.edit) ? decision : 'approval_decided';
    }
    if (this.yes && this.edit !== undefined && this.edit < 0) {
      return now < expected.deadline ? 'approval_parameters_invalid' : 'approval_expired';
    }
    assert.ok(now < expected.deadline, 'overdue requests have been expired');
    if (!this.yes) {
      close(expected, 'rejected', 'human');
      return decision;
    }
    expected.status = 'approved';
    if (this.edit !== undefined) expected.edited = this.edit;
    run(expected);
    return decision;
  }
  toString = () => `${this.yes ? 'approve' : 'reject'}(${this.at}, ${this.which}, ${this.edit})`;
}

class Cancel implements Command {
  constructor(readonly which: number) {}
  check = ({ requests }: Readonly<Model>) => requests.length > 0;
  async run(model: Model, real: Real): Promise<void> {
    const expected = model.requests[this.which % model.requests.length]!;
    for (const { cancels } of real.processes) cancels.get(expected.call.requestId)?.abort('enough');
    if (expected.status === 'waiting') close(expected, 'cancelled');
    await assertMatches(model, real);
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
      if (expected.status === 'waiting' && expected.deadline <= model.now) close(expected, 'rejected', 'timeout');
    }
    await assertMatches(model, real);
  }
  toString = () => `pass(${this.ms})`;
}

/** A process dies, and another one continues its calls. */
class Kill implements Command {
  constructor(readonly at: number) {}
  check = () => true;
  async run(model: Model, real: Real): Promise<void> {
    const dead = real.processes[this.at]!;
    const interrupted = model.requests.filter(({ call }) => dead.cancels.has(call.requestId));
    // A killed process does not wait for its running tools.
    dead.app.service.runningClaims.clear();
    await dead.app.service.close();
    await real.start(this.at);
    for (const expected of interrupted) {
      real.put(this.at, expected.call, true);
      if (expected.run !== 'claimed') continue;
      expected.run = 'unknown';
      expected.outcome = 'interrupted';
    }
    await assertMatches(model, real);
  }
  toString = () => `kill(${this.at})`;
}

test(
  'after any sequence of commands, a request has the expected state and its tool ran at most once',
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
          for (const { app } of real.processes) {
            app.service.runningClaims.clear();
            await app.service.close();
          }
        }
      }),
      { numRuns: Number(process.env.SVC_TEST_RUNS ?? 200) },
    );
  },
  { timeoutMs: 300_000 },
);
