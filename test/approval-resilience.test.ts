import * as assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { callbackHandler } from '../config/sdk/callback/handler.ts';
import { Svc } from '../config/sdk/index.ts';
import { auditTrail } from '../core/approval/audit.ts';
import { DETACH } from '../core/approval/call.ts';
import { DeliveryFailed } from '../core/approval/channel.ts';
import { listApprovals } from '../core/approval/list-approvals.ts';
import type { ApprovalRecord } from '../core/approval/request.ts';
import { newRequestId } from '../core/approval/request.ts';
import { type ApprovalRow, approvals } from '../core/approval/schema.ts';
import { ApprovalService } from '../core/approval/service.ts';
import { SvcError } from '../core/errors.ts';
import { Kernel } from '../core/kernel.ts';
import type { Tool } from '../core/tool/tool.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  approve,
  Bank,
  compileTestTools,
  createGate,
  OWNER,
  openApprovalProcess,
  type PendingCall,
  readRow,
  refund,
  startCall,
} from './suites/approval-setup.ts';
import { expectError, expectRejection } from './suites/expect-error.ts';
import { CALLBACK_KEY } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';

// A request survives faults around it: taps that throw, results that are too large to store, a store out of reach.

test('taps that throw on notifications stop neither the request nor its decision', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const bank = new Bank();
  app.kernel.hooks.approvalRequested.tap('broken', () => {
    throw new Error('no paper');
  });
  app.kernel.hooks.approvalDecided.tapPromise('broken', async () => {
    throw new Error('no ink');
  });
  const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), refund());
  await waitUntil(() => app.warnings.length === 1, 'There was no warning.');
  assert.equal((await readRow(app, request)).record.status, 'waiting');
  assert.equal((await approve(app, request)).status, 'approved');
  assert.equal((await outcome).status, 'completed');
  assert.equal(bank.paid.length, 1);
  assert.deepEqual(app.warnings, [
    'A tap on approvalRequested threw: no paper',
    'A tap on approvalDecided threw: no ink',
  ]);
  await app.service.close();
});

test('a missing driver is reported at the first attempt, with the command that installs it', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const deliver = async () => {
    throw new SvcError('driver_missing', 'The RabbitMQ driver is not installed.', { next: ['npm install amqplib'] });
  };
  const gate = createGate(app, compileTestTools(new Bank().tool()), { routes: [{ channel: 'bus', deliver }] });
  const { request, outcome } = await startCall(gate, refund());
  await waitUntil(() => app.warnings.length > 0, 'There was no warning.');
  await approve(app, request);
  await outcome;
  assert.deepEqual(app.warnings, [
    `The channel bus did not deliver ${request.requestId}: The RabbitMQ driver is not installed (next: npm install amqplib). Retrying.`,
  ]);
  await app.service.close();
});

test('taps on notifications that never end delay delivery, decision and deadline by a limited time', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const delivered: string[] = [];
  const route = { channel: 'memory', deliver: async () => void delivered.push('request') };
  const gate = createGate(app, compileTestTools(new Bank().tool()), {
    routes: [route],
    humanInLoop: { approvalTimeout: 60_000 },
  });
  app.kernel.hooks.approvalRequested.tapPromise('hangs', () => new Promise(() => {}));
  app.kernel.hooks.approvalDecided.tapPromise('hangs', () => new Promise(() => {}));
  const { request, outcome } = await startCall(gate, refund());
  const approved = approve(app, request);
  assert.equal((await outcome).status, 'completed');
  assert.equal((await approved).status, 'approved');
  await waitUntil(() => app.warnings.length === 2, 'the taps were waited for');
  await app.service.close();
});

test('callbacks of a call that throw or reject stop neither the call nor the process', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const bank = new Bank();
  const gate = createGate(app, compileTestTools(bank.tool()));
  const call = refund();
  const outcome = await gate.call(call, {
    // Rejected because of the other execution, after the call has been decided.
    onRequested: async (request) => {
      await approve(app, request);
      await waitUntil(() => bank.paid.length === 1, 'The tool never ran.');
      return approve(app, { ...request, executionId: 'exe_other' });
    },
    onDecided: () => {
      throw new Error('no ink');
    },
  });
  assert.equal(outcome.status, 'completed');
  await waitUntil(() => app.warnings.length === 2, 'There was no warning.');
  assert.deepEqual(app.warnings, [
    'onDecided threw: no ink',
    'onRequested threw: No request with that id belongs to that execution.',
  ]);
  await app.service.close();
});

test('a channel that requests a pause longer than timers support is not retried', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const attempts = { patient: 0, other: 0 };
  const route = (channel: 'patient' | 'other', afterMs: number) => ({
    channel,
    deliver: async () => {
      attempts[channel] += 1;
      throw new DeliveryFailed('later', { afterMs });
    },
  });
  const gate = createGate(app, compileTestTools(new Bank().tool()), {
    routes: [route('patient', 3_000_000_000), route('other', 0)],
    humanInLoop: { approvalTimeout: 31_536_000_000 },
  });
  const { request, outcome } = await startCall(gate, refund());
  await waitUntil(() => attempts.other === 2, 'The other channel was not tried again.');
  assert.equal(attempts.patient, 1);
  await approve(app, request);
  assert.equal((await outcome).status, 'completed');
  await app.service.close();
});

test('a successful delivery is not repeated, even after many failed attempts', async () => {
  const backend = new MemoryStore();
  const [first, next] = [await openApprovalProcess(backend), await openApprovalProcess(backend)];
  const messages: string[] = [];
  const route = (channel: string) => ({ channel, deliver: async () => void messages.push(channel) });
  const tools = compileTestTools(new Bank().tool());
  const call = refund();
  const detach = new AbortController();
  const interrupted = await startCall(createGate(first, tools), call, { signal: detach.signal });
  const { requestId } = interrupted.request;
  for (let attempt = 1; attempt <= 1001; attempt++) {
    const delivered = attempt === 1001;
    const at = new Date(attempt);
    const id = `del_${attempt}`;
    await first.service.deliveries.insert({
      id,
      requestId,
      channel: 'ops',
      at,
      delivered,
      error: delivered ? null : 'no',
      receipt: null,
    });
  }
  detach.abort(DETACH);
  await expectError(interrupted.outcome, 'interrupted');
  const again = await startCall(createGate(next, tools, { routes: [route('ops'), route('new')] }), call);
  await waitUntil(() => messages.includes('new'), 'The other channel got no message.');
  assert.deepEqual(messages, ['new']);
  await approve(next, again.request);
  await again.outcome;
  for (const { service } of [first, next]) await service.close();
});

test('an approval is reported to a channel once, also if no process was waiting', async () => {
  const backend = new MemoryStore();
  const [first, next] = [await openApprovalProcess(backend), await openApprovalProcess(backend)];
  const tools = compileTestTools(new Bank().tool());
  const messages: string[] = [];
  const routes = [
    {
      channel: 'ops',
      deliver: async () => {},
      onDecided: async ({ requestId, status }: ApprovalRecord) => void messages.push(`${requestId} ${status}`),
    },
  ];
  const [calm, crashed] = [refund(), refund()];
  const detach = new AbortController();
  const waited = await startCall(createGate(first, tools, { routes }), calm);
  const interrupted = await startCall(createGate(first, tools, { routes }), crashed, { signal: detach.signal });
  detach.abort(DETACH);
  await expectError(interrupted.outcome, 'interrupted');
  await approve(first, waited.request);
  await approve(first, interrupted.request);
  await waited.outcome;
  for (let round = 0; round < 3; round++) {
    for (const call of [calm, crashed])
      assert.equal((await createGate(next, tools, { routes }).call(call)).status, 'completed');
  }
  assert.deepEqual(messages, [`${waited.request.requestId} approved`, `${interrupted.request.requestId} approved`]);
  for (const { service } of [first, next]) await service.close();
});

test('a call that is aborted before the gate is not sent to a channel', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const messages: string[] = [];
  const routes = [
    {
      channel: 'ops',
      deliver: async () => void messages.push('deliver'),
      onDecided: async () => void messages.push('decided'),
    },
  ];
  const gate = createGate(app, compileTestTools(new Bank().tool()), { routes });
  assert.equal((await gate.call(refund(), { signal: AbortSignal.abort('gone') })).status, 'cancelled');
  const { request, outcome } = await startCall(gate, refund());
  await waitUntil(() => messages.length > 0, 'The next call was not sent to the channel.');
  await approve(app, request);
  await outcome;
  assert.deepEqual(messages, ['deliver', 'decided']);
  await app.service.close();
});

for (const [who, hasOther] of [
  ['another waiting call', true],
  ['a repeated call', false],
] as const) {
  test(`a failed delivery of an interrupted call is repeated for ${who}`, async () => {
    const app = await openApprovalProcess(new MemoryStore());
    const bank = new Bank();
    let [attempts, taps] = [0, 0];
    let isUp = false;
    const deliver = async () => {
      attempts += 1;
      if (!isUp) throw new DeliveryFailed('down', { afterMs: 60_000 });
    };
    app.kernel.hooks.approvalRequested.tap('test', () => void taps++);
    const gate = createGate(app, compileTestTools(bank.tool()), {
      routes: [{ channel: 'ops', deliver }],
      humanInLoop: { approvalTimeout: 600_000 },
    });
    const call = refund();
    const detach = new AbortController();
    const interrupted = await startCall(gate, call, { signal: detach.signal });
    const otherCall = hasOther ? await startCall(gate, call) : undefined;
    const { requestId } = interrupted.request;
    const deliveries = async () =>
      (await app.service.deliveries.page('byRequest', { equals: { requestId }, limit: 10 })).records.map(
        ({ record }) => record.delivered,
      );
    // Enough subscriptions that the watcher reads them in pages.
    const others = Array.from({ length: 17 }, () => app.service.watcher.subscribe(newRequestId()));
    await waitUntil(async () => (await deliveries()).length === 1, 'The channel was not tried.');
    isUp = true;
    if (hasOther) await failFirstRead(app, interrupted);
    else {
      detach.abort(DETACH);
      await expectError(interrupted.outcome, 'interrupted');
    }
    const { outcome } = otherCall ?? (await startCall(gate, call));
    await waitUntil(async () => (await deliveries()).length === 2, 'The channel was not tried again.');
    assert.deepEqual((await deliveries()).sort(), [false, true]);
    assert.deepEqual([attempts, taps], [2, 1]);
    await approve(app, interrupted.request);
    assert.equal((await outcome).status, 'completed');
    assert.equal(app.service.announcements.size, 0);
    for (const subscription of others) subscription.unsubscribe();
    await app.service.close();
  });
}

/** Makes the first read of the store fail after the other calls have read it and continue to wait. */
async function failFirstRead(
  { service }: ApprovalProcess,
  { request: { requestId }, outcome }: PendingCall,
): Promise<void> {
  const { read } = service;
  let reads = 0;
  let fail = () => {};
  service.read = (id) => {
    reads += 1;
    if (reads > 1) return read.call(service, id);
    return new Promise((_, reject) => {
      fail = () => reject(new SvcError('permission_denied', 'Not now.'));
    });
  };
  service.watcher.notify(requestId);
  await waitUntil(() => reads === 2, 'No other call waits.');
  service.read = read;
  fail();
  await expectError(outcome, 'permission_denied');
}

test('a result that is too large to store reaches its caller; a repeated call reports only that it ran', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const bank = new Bank();
  const MAX_STORED_BYTES = 256 * 1024;
  // As JSON, with two quotes, exactly the limit and one byte more.
  for (const [size, isStored] of [
    [MAX_STORED_BYTES - 2, true],
    [MAX_STORED_BYTES - 1, false],
  ] as const) {
    const large = 'x'.repeat(size);
    const gate = createGate(app, compileTestTools(bank.tool({ handler: () => bank.paid.push({}) && large })));
    const call = refund();
    const { request, outcome } = await startCall(gate, call);
    await approve(app, request);
    assert.deepEqual((await outcome).result, large);
    const again = await gate.call(call);
    assert.equal(again.status, 'completed');
    if (isStored) assert.equal(again.result, large);
    else assert.equal((again.result as { error: string }).error, 'result_not_kept');
  }
  assert.equal(bank.paid.length, 2);
  await app.service.close();
});

test('a failed announcement ends neither its call nor the process', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const bank = new Bank();
  const call = refund();
  const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool())), call);
  await approve(app, request);
  await outcome;
  const { read } = app.service;
  // Stored by an older version of the SDK.
  const result = JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`);
  app.service.read = async (id) => {
    const { record, version } = (await read.call(app.service, id))!;
    const body = { ...record.body, outcome: { status: 'completed' as const, result } };
    return { version, record: { ...record, status: 'rejected', body } };
  };
  const routes = [{ channel: 'pager', deliver: async () => {}, onDecided: async () => {} }];
  assert.equal((await createGate(app, compileTestTools(bank.tool()), { routes }).call(call)).status, 'rejected');
  await waitUntil(() => app.warnings.length > 0, 'There was no warning.');
  assert.match(app.warnings[0]!, /^The announcement threw: /);
  await app.service.close();
});

test('a service that is closed reads no further pages of overdue requests', async () => {
  const backend = new MemoryStore();
  const app = await openApprovalProcess(backend);
  const { rows } = app.service;
  const page = rows.page.bind(rows);
  let pages = 0;
  let closing: Promise<void> | undefined;
  rows.page = async (...query) => {
    pages += 1;
    closing ??= app.service.close();
    return page(...query);
  };
  assert.equal(await app.service.sweep(), 0);
  await closing;
  assert.equal(pages, 1);
});

for (const kind of ['a resumed call', 'a repeated call that no policy gates any more'] as const) {
  test(`${kind} whose validation throws leaves no subscription`, async () => {
    const app = await openApprovalProcess(new MemoryStore());
    let isGated = true;
    app.kernel.hooks.beforeToolCall.tap('budget', (review) => {
      if (isGated) review.requireApproval('Over the budget.');
    });
    const tools = compileTestTools(new Bank().tool({ requiresConfirmation: false }));
    const call = refund();
    const detach = new AbortController();
    const { request, outcome } = await startCall(createGate(app, tools), call, { signal: detach.signal });
    detach.abort(DETACH);
    await expectError(outcome, 'interrupted');

    const { watcher } = app.service;
    const subscribe = watcher.subscribe.bind(watcher);
    let open = 0;
    watcher.subscribe = (requestId) => {
      open += 1;
      const subscription = subscribe(requestId);
      const unsubscribe = () => {
        open -= 1;
        subscription.unsubscribe();
      };
      return { ...subscription, unsubscribe };
    };
    isGated = false;
    let validations = 0;
    const isResumed = kind === 'a resumed call';
    const tool: Tool = {
      ...tools.get('refund')!,
      async validate(value) {
        validations += 1;
        // A repeated call is validated before its request is looked up, and compared with it after that.
        if (isResumed) throw new RangeError('Maximum call stack size exceeded');
        const validated = await tools.get('refund')!.validate(value);
        assert.ok(validated.ok);
        return { ...validated, parameters: { ...validated.parameters, self: 1n as never } };
      },
    };
    const gate = createGate(app, new Map([['refund', tool]]));
    const again = isResumed ? { ...call, requestId: request.requestId } : call;
    const error = await expectRejection(gate.call(again, isResumed ? { resumed: true } : {}), 'it did not throw');
    assert.match(error.message, isResumed ? /call stack/ : /cannot be written as JSON/);
    assert.deepEqual([validations, open], [1, 0]);
    await app.service.close();
  });
}

test('500: the callback exposes no details, and a warning has them under the id of the answer, without tokens', async () => {
  const warnings: (Error & { readonly detail?: string })[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  const app = await openApprovalProcess(new MemoryStore());
  try {
    const { request } = await startCall(createGate(app, compileTestTools(new Bank().tool())), refund());
    const answer = callbackHandler({
      approvals: app.service,
      product: OWNER.product,
      env: OWNER.env,
      key: CALLBACK_KEY,
    });
    const { token } = await app.service.personTokens.create({ id: 'ann' }, { validForMs: 60_000 });
    app.service.read = () => Promise.reject(new TypeError(`no such thing: ${token}`));
    const url = `https://shop.example/approvals/${request.requestId}/respond?token=v1.${'A'.repeat(43)}`;
    for (const method of ['GET', 'POST']) {
      const response = await answer(new Request(url, { method }));
      const text = await response.text();
      assert.equal(response.status, 500);
      assert.doesNotMatch(text, /no such thing|svcp_/);
      const [errorId = 'none'] = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(text) ?? [];
      await waitUntil(() => warnings.some(({ message }) => message.includes(errorId)), `${method}: ${text}`);
    }
    for (const { message, stack, detail } of warnings) {
      assert.match(message, /no such thing: <token>$/);
      assert.match(detail ?? '', /TypeError: no such thing: <token>\n/);
      assert.doesNotMatch(`${message}${stack}${detail}`, /svcp_/);
    }
  } finally {
    process.off('warning', onWarning);
    await app.service.close();
  }
});

test('503: the callback reports an unusable store, decides nothing, and exposes no details', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const { request } = await startCall(createGate(app, compileTestTools(new Bank().tool())), refund());
  const answer = callbackHandler({ approvals: app.service, product: OWNER.product, env: OWNER.env, key: CALLBACK_KEY });
  const url = `https://shop.example/approvals/${request.requestId}/respond?token=v1.${'A'.repeat(43)}`;
  const { read } = app.service;
  for (const code of ['connection_lost', 'connection_failed', 'permission_denied', 'migration_failed'] as const) {
    app.service.read = () => Promise.reject(new SvcError(code, 'gone: postgres://shop:hunter2@db'));
    const headers = { 'content-type': 'application/json' };
    const posted = await answer(new Request(url, { method: 'POST', headers, body: '{"approved":true}' }));
    assert.deepEqual([posted.status, posted.headers.get('retry-after')], [503, '5']);
    const body = (await posted.json()) as { error: string };
    assert.equal(body.error, 'store_unavailable');
    const shown = await answer(new Request(url));
    assert.equal(shown.status, 503);
    assert.ok(!`${JSON.stringify(body)}${await shown.text()}`.includes('hunter2'));
  }
  app.service.read = read;
  assert.equal((await readRow(app, request)).record.status, 'waiting');
  await app.service.close();
});

test('a store in memory causes a warning outside of dev', async () => {
  for (const env of ['dev', 'prd']) {
    const warned: string[] = [];
    const onWarning = ({ message }: Error) => warned.push(message);
    process.on('warning', onWarning);
    const svc = new Svc({ config: { product: 'shop' }, env });
    await svc.approvals.list();
    await svc.approvals.list();
    await new Promise(setImmediate);
    process.off('warning', onWarning);
    await svc.close();
    const memoryWarnings = warned.filter((message) => message.includes('stored in memory'));
    assert.equal(memoryWarnings.length, env === 'dev' ? 0 : 1, warned.join());
    if (env !== 'dev')
      assert.match(memoryWarnings[0]!, /^Approvals of "prd" .* Set approvals\.store in svc\.config\.$/);
  }
});

test('log lines of a handler name the agent and the call, and control characters are escaped', async () => {
  const lines: string[] = [];
  const log = (line: string) => lines.push(line);
  const kernel = new Kernel();
  const service = await ApprovalService.open({ backend: new MemoryStore(), hooks: kernel.hooks, owner: OWNER, log });
  const app = { service, kernel, warnings: [] };
  const tool = new Bank().tool({
    handler: (ctx) => {
      ctx.log('paid\u001b[2J\u202e', { text: 'a\u001bb' });
      ctx.log('plain');
    },
  });
  const { request, outcome } = await startCall(createGate(app, compileTestTools(tool)), refund());
  await approve(app, request);
  await outcome;
  await createGate(app, compileTestTools({ ...tool, requiresConfirmation: false })).call(
    refund(undefined, { toolCallId: 'free' }),
  );
  assert.equal(lines.length, 4);
  const [gated, plain, free] = lines as [string, string, string];
  assert.ok(gated.startsWith(`payouts ${request.requestId}: paid`) && gated.includes('{'), gated);
  assert.ok(!lines.some((line) => line.includes('\u001b') || line.includes('\u202e')), lines.join('\n'));
  assert.equal(plain, `payouts ${request.requestId}: plain`);
  assert.ok(free.startsWith('payouts free: paid'), free);
  await service.close();
});

test('a tool does not fail because of what it logs', async () => {
  const lines: string[] = [];
  const log = (line: string) => lines.push(line);
  const kernel = new Kernel();
  const service = await ApprovalService.open({ backend: new MemoryStore(), hooks: kernel.hooks, owner: OWNER, log });
  const app = { service, kernel, warnings: [] };
  const circular: Record<string, unknown> = { status: 200 };
  circular.self = circular;
  const hostile = {
    toJSON() {
      throw new Error('no');
    },
    [inspect.custom]() {
      throw new Error('never');
    },
  };
  const tool = new Bank().tool({
    handler: (ctx) => {
      for (const data of [{ id: 10n }, circular, () => 1, hostile]) ctx.log('paid', data as never);
      for (const message of [new Error('late'), 42, null, Object.create(null), hostile]) ctx.log(message as never);
      return 'receipt';
    },
  });
  const { request, outcome } = await startCall(createGate(app, compileTestTools(tool)), refund());
  await approve(app, request);
  const { status, result } = await outcome;
  assert.deepEqual([status, result], ['completed', 'receipt']);
  const messages = lines.map((line) => line.slice(`payouts ${request.requestId}: `.length));
  assert.equal(messages.length, 9, lines.join('\n'));
  for (const [at, pattern] of [
    [0, /^paid .*10n/],
    [1, /^paid .*200.*Circular/s],
    [2, /^paid \[Function/],
    [3, /^paid \[value cannot be formatted: never\]$/],
    [4, /^Error: late/],
    [5, /^42$/],
  ] as const) {
    assert.match(messages[at]!, pattern);
  }
  await service.close();
});

test('whatever is stored in place of an approved request, the list, its details and the audit can be read', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const gate = createGate(app, compileTestTools(new Bank().tool()));
  const damages: readonly ((body: ApprovalRow['body']) => unknown)[] = [
    () => [],
    () => 'text',
    (body) => ({ ...body, decision: { ...body.decision, at: 'yesterday' } }),
    (body) => ({ ...body, timeoutMs: 1e300, validForMs: undefined }),
    (body) => ({ ...body, waiters: [{}] }),
    (body) => ({ ...body, sensitive: 'order' }),
    (body) => ({ ...body, rules: { at: 0 } }),
    (body) => ({ ...body, outcome: undefined }),
    (body) => ({ ...body, parameters: undefined }),
  ];
  for (const damage of damages) {
    const { request, outcome } = await startCall(gate, refund());
    await approve(app, request);
    await outcome;
    const { record, version } = await readRow(app, request);
    const damaged = { ...record, body: damage(record.body) as ApprovalRow['body'] };
    assert.equal(await app.service.backend.records(approvals).replace(record.requestId, version, damaged), 'replaced');
    const found = (await readRow(app, request)).record;
    assert.deepEqual([found.body.tool, found.body.run], ['(damaged)', 'unknown'], damage.toString());
  }
  const { records } = await listApprovals(app.service, { status: 'approved' });
  assert.equal(records.length, damages.length);
  for await (const entry of auditTrail(app.service)) assert.ok(entry);
  await app.service.close();
});
