import * as assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { listApprovals } from '../../core/approval/list-approvals.ts';
import type { DeclareApprovalCase } from './approval-case.ts';
import {
  approve,
  Bank,
  compileTestTools,
  createGate,
  readRow,
  refund,
  reject,
  startCall,
  trailOf,
} from './approval-setup.ts';
import { expectError } from './expect-error.ts';

/** Declares what becomes of parameters, results and errors: their order, size, characters and secrets. */
export function declareTextCases(on: DeclareApprovalCase): void {
  on('parameters, changes and results keep the order of their keys', async (open) => {
    const [app, other] = await Promise.all([open(), open()]);
    const handled: string[] = [];
    const result = {
      zone: 1,
      id: [
        { y: 1, x: { b: 1, a: 2 } },
        { y: 2, x: null },
        { x: 3, y: 3 },
      ],
      of: 'a',
    };
    const parameters = { zone: { type: 'object' }, order: { type: 'string' }, a: { type: 'number' } } as const;
    const handler = (_ctx: unknown, params: unknown) => {
      handled.push(JSON.stringify(params));
      return result;
    };
    const gate = createGate(app, compileTestTools({ tag: 'refund', requiresConfirmation: true, parameters, handler }));
    const sent = { zone: { street: 'x', no: 1, city: { zip: 'z', name: 'n' } }, order: '1', a: 2 };
    const { request, outcome } = await startCall(gate, refund(sent));
    const modifiedParams = { zone: { no: 2, city: 'c', at: 1 }, a: 3 };
    await approve(other, request, modifiedParams);
    assert.equal(JSON.stringify((await outcome).result), JSON.stringify(result));
    assert.deepEqual(handled, [JSON.stringify({ ...sent, ...modifiedParams })]);
    const { records } = await listApprovals(other.service, { status: 'approved' });
    const record = records.find(({ requestId }) => requestId === request.requestId)!;
    assert.deepEqual(
      [record.parameters, record.modifiedParams, record.outcome?.result].map((value) => JSON.stringify(value)),
      [sent, modifiedParams, result].map((value) => JSON.stringify(value)),
    );
  });

  on('a megabyte of parameters is rejected', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
    const ended = await gate.call(refund({ order: 'x'.repeat(1024 * 1024), amount: 1 }));
    assert.equal(ended.status, 'invalid');
    assert.equal((ended.result as { error: string }).error, 'parameters_too_large');
    assert.deepEqual((await listApprovals(app.service)).records, []);
    const large = await startCall(gate, refund({ order: 'ä'.repeat(100 * 1024), amount: 1 }));
    await expectError(approve(app, large.request, { order: 'ä'.repeat(200 * 1024) }), 'parameters_too_large');
    // The size is checked before anything else is read.
    const endless = {
      order: Array.from({ length: 1024 * 1024 }, () => 1),
      get amount(): number {
        throw new Error('It was read.');
      },
    };
    const unread = await gate.call(refund(endless));
    assert.equal((unread.result as { error: string }).error, 'parameters_too_large');
    await expectError(approve(app, large.request, endless), 'parameters_too_large');
    await approve(app, large.request);
    assert.equal((await large.outcome).status, 'completed');
  });

  on('an invalid call is reported to the model and creates no request', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const gate = createGate(app, compileTestTools(bank.tool()));
    const wrong: [unknown, string][] = [
      [{ order: 5, amount: 1 }, 'invalid_parameters'],
      [{ order: 'a' }, 'invalid_parameters'],
      [{ order: 'a', amount: 1, extra: true }, 'invalid_parameters'],
      ['text', 'invalid_parameters'],
      [JSON.parse('{ "order": "a", "amount": 1, "__proto__": {} }'), 'invalid_parameters'],
    ];
    for (const [parameters, error] of wrong) {
      const ended = await gate.call(refund(parameters));
      assert.deepEqual([ended.status, (ended.result as { error: string }).error], ['invalid', error]);
    }
    const unknown = await gate.call({ ...refund(), tool: 'wire' });
    assert.equal((unknown.result as { error: string }).error, 'unknown_tool');
    assert.deepEqual((await listApprovals(app.service)).records, []);
  });

  on('sensitive parameters are masked, and a decision on them requires a review token', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const tool = bank.tool({
      parameters: {
        order: { type: 'string', required: true },
        amount: { type: 'number', required: true },
        iban: { type: 'string', sensitive: true },
      },
    });
    const events: object[] = [];
    app.kernel.hooks.approvalRequested.tap('test', (request) => void events.push(request));
    app.kernel.hooks.approvalDecided.tap('test', (record) => void events.push(record));
    const call = refund({ order: 'a', amount: 1, iban: 'DE00SECRET' });
    const { request, outcome } = await startCall(createGate(app, compileTestTools(tool)), call);
    assert.deepEqual(request.parameters.iban, { masked: true });
    await expectError(approve(app, request), 'approval_unseen');
    await expectError(reject(app, request), 'approval_unseen');
    await expectError(approve(app, request, undefined, { reviewToken: 'guess' }), 'approval_unseen');
    const reviewToken = (await readRow(app, request)).record.body.digest;
    await approve(app, request, { iban: 'DE99SECRET' }, { reviewToken });
    assert.equal((await outcome).status, 'completed');
    assert.equal(bank.paid[0]!.iban, 'DE99SECRET');
    const trail = await trailOf(app);
    const listed = (await listApprovals(app.service, { status: 'approved' })).records;
    assert.ok(listed.length === 1 && events.length === 2);
    assert.ok(!JSON.stringify([events, listed, trail]).includes('SECRET'));
  });

  on('an error that quotes a sensitive parameter is stored and returned without it', async (open) => {
    const [app, other] = await Promise.all([open(), open()]);
    const parameters = {
      card: { type: 'object', sensitive: true },
      pin: { type: 'integer', sensitive: true },
      order: { type: 'string' },
    } as const;
    const handler = (_ctx: unknown, params: unknown) => {
      const { card, pin, order } = params as { card: { holder: string; number: string }; pin: number; order: string };
      const url = `https://bank.example/?n=${encodeURIComponent(card.holder)}`;
      throw new Error(
        `card ${card.number} of ${card.holder.toUpperCase()} with ${pin} (${JSON.stringify(card)}, ${url}) for order ${order}7`,
      );
    };
    const tool = { tag: 'refund', requiresConfirmation: true, parameters, handler };
    const gate = createGate(app, compileTestTools(tool));
    const card = { holder: 'Ann "A" Lee', number: '4111-1111' };
    const { request, outcome } = await startCall(gate, refund({ card, pin: 7, order: 'a7' }));
    const { digest } = (await readRow(other, request)).record.body;
    await approve(other, request, { card: { ...card, number: '5500.0000' } }, { actor: 'ann', reviewToken: digest });
    const { status, result } = await outcome;
    const message =
      'The tool failed: card [masked] of [masked] with [masked] ' +
      '({"holder":"[masked]","number":"[masked]"}, https://bank.example/?n=[masked]) for order a77';
    assert.deepEqual([status, (result as { message: string }).message], ['failed', message]);
    const stored = JSON.stringify((await readRow(other, request)).record.body.outcome);
    assert.ok(stored.includes('[masked]') && !/4111|5500|Ann|ANN/.test(stored), stored);
    const free = createGate(app, compileTestTools({ ...tool, requiresConfirmation: false }));
    const ended = await free.call({ tool: 'refund', parameters: { card, pin: 7, order: 'a7' } });
    assert.equal((ended.result as { message: string }).message, message);
  });

  on('the error of a handler reaches the model without its secrets', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const failing = bank.tool({
      handler: () => {
        throw new Error('cannot reach postgres://bank:hunter2@db/bank');
      },
    });
    const { request, outcome } = await startCall(createGate(app, compileTestTools(failing)), refund());
    await approve(app, request);
    const ended = await outcome;
    assert.equal(ended.status, 'failed');
    assert.ok(!JSON.stringify(ended).includes('hunter2'));
    assert.equal((await readRow(app, request)).record.body.run, 'done');
  });

  on('a result with characters that stores reject is not lost', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const returning = bank.tool({ handler: () => ({ 'k\0': 'a\0b', lone: '\ud800' }) });
    const failing = bank.tool({
      handler: () => {
        throw new Error(`${'x'.repeat(1_999 - 'a\0'.length)}a\0\u{1f600}`);
      },
    });
    for (const tool of [returning, failing]) {
      const call = refund();
      const gate = createGate(app, compileTestTools(tool));
      const { request, outcome } = await startCall(gate, call);
      await approve(app, request);
      const ended = await outcome;
      assert.deepEqual(await gate.call(call), ended);
      if (tool === returning) assert.deepEqual(ended.result, { 'k\uFFFD': 'a\uFFFDb', lone: '\uFFFD' });
      else assert.match((ended.result as { message: string }).message, /xa\uFFFD\uFFFD$/);
    }
  });

  on('a result nested too deeply for a store is reported as not kept', async (open) => {
    const [app, other, bank] = [await open(), await open(), new Bank()];
    for (const [depth, isKept] of [
      [65, true],
      [66, false],
      [3_600, false],
    ] as const) {
      const text = `${'['.repeat(depth)}"a\\u0000"${']'.repeat(depth)}`;
      const gate = createGate(app, compileTestTools(bank.tool({ handler: () => JSON.parse(text) })));
      const call = refund();
      const { request, outcome } = await startCall(gate, call);
      await approve(app, request);
      const given = JSON.stringify(await outcome.then(({ result }) => result));
      assert.equal(given, text.replace('\\u0000', '\uFFFD'));
      const again = await createGate(other, compileTestTools(bank.tool())).call(call);
      assert.equal(again.status, 'completed');
      if (isKept) assert.equal(JSON.stringify(again.result), given);
      else assert.equal((again.result as { error: string }).error, 'result_not_kept');
    }
    assert.deepEqual(bank.paid, []);
  });

  on('a call with the longest parameters ends with an outcome that can be stored', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    // 91 different characters of one byte each: two such texts exceed an item of DynamoDB even if compressed.
    const codes = [...randomBytes(255 * 1024)].map((byte) => '#'.charCodeAt(0) + (byte % 91));
    const noise = Buffer.from(codes).toString('latin1').replaceAll('\\', '!');
    let handler: () => unknown = () => 'paid';
    let isDenied = false;
    app.kernel.hooks.beforeToolCall.tap('budget', (review) => {
      if (isDenied) review.deny('Over the budget.');
    });
    const tool = bank.tool({ handler: () => bank.paid.push({}) && handler() });
    const gate = createGate(app, compileTestTools(tool));
    const run = async (more: { handler?: () => unknown; isDenied?: boolean }) => {
      const call = refund({ order: noise, amount: 1 });
      const { request, outcome } = await startCall(gate, call);
      handler = more.handler ?? handler;
      isDenied = more.isDenied === true;
      await approve(app, request);
      const first = await outcome;
      isDenied = false;
      return [first, await gate.call(call), (await readRow(app, request)).record.body.run] as const;
    };
    const [first, again, runState] = await run({ handler: () => noise });
    assert.deepEqual([first.status, first.result, runState], ['completed', noise, 'done']);
    assert.equal(again.status, 'completed');
    if (again.result !== noise) assert.equal((again.result as { error: string }).error, 'result_not_kept');
    const throws = () => {
      throw new Error('The bank is closed.');
    };
    const [failed, ...stored] = await run({ handler: throws });
    assert.equal(failed.status, 'failed');
    assert.equal((failed.result as { parameters: { order: string } }).parameters.order, noise);
    assert.deepEqual(stored, [failed, 'done']);
    const [denied, ...closed] = await run({ isDenied: true });
    assert.deepEqual([denied.status, (denied.result as { reason: string }).reason], ['denied', 'Over the budget.']);
    assert.deepEqual(closed, [denied, 'none']);
    assert.equal(bank.paid.length, 2);
  });

  on('a cancellation or denial with characters that stores reject is not lost', async (open) => {
    const [app, bank] = [await open(), new Bank()];
    const text = `never mind \0 \ud83d ${'x'.repeat(20_000)}`;
    const stored = text.slice(0, 10_000).replace('\0', '\uFFFD').replace('\ud83d', '\uFFFD');
    const gate = createGate(app, compileTestTools(bank.tool()));
    const stop = new AbortController();
    const remaining = await startCall(gate, refund(), { signal: stop.signal });
    stop.abort(new Error(text));
    const cancelled = await remaining.outcome;
    assert.deepEqual([cancelled.status, (cancelled.result as { reason: string }).reason], ['cancelled', stored]);
    const { request, outcome } = await startCall(gate, refund());
    app.kernel.hooks.beforeToolCall.tap('budget', (review) => review.deny(text));
    await approve(app, request);
    const denied = await outcome;
    assert.deepEqual([denied.status, (denied.result as { reason: string }).reason], ['denied', stored]);
    const never = await gate.call(refund());
    assert.deepEqual([never.status, (never.result as { reason: string }).reason], ['denied', stored]);
    assert.equal(bank.paid.length, 0);
  });
}
