import * as assert from 'node:assert/strict';
import { Svc } from '../config/sdk/index.ts';
import { assertApprovalSettings, type CompiledAgent, compileAgent } from '../core/agent/define.ts';
import type { Conversation } from '../core/agent/model.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { isSvcError } from '../core/errors.ts';
import type { ApprovalSettings } from '../core/tool/human-in-loop.ts';
import { storedValidator } from '../core/tool/input-schema.ts';
import type { ParameterValidation } from '../core/tool/parameters.ts';
import { defineTool } from '../core/tool/tool.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

const handler = () => null;
const model = { provider: 'scripted', model: 'x', settings: { turns: [] } };
const refund = { tag: 'refund', parameters: { amount: { type: 'number', required: true } }, handler };
const definition = { tag: 'payouts', name: 'Payouts', model, systemPrompt: 'Pay.', tools: [refund] };
const around: ApprovalSettings = { brokers: ['bus'], callbackBase: true, callbackKey: true };

function tool(parameters: object, more: object = {}): object {
  return { ...definition, tools: [{ ...refund, parameters, ...more }] };
}

function loop(humanInLoop: object): object {
  return { ...definition, humanInLoop };
}

/** Invalid definitions, and the path that the error names. */
const MISTAKES: readonly [what: string, definition: unknown, where: RegExp, surroundings?: ApprovalSettings][] = [
  ['nothing', undefined, /It is undefined, expected an object/],
  ['a text', 'payouts', /It is string, expected an object/],
  ['no tag', { ...definition, tag: undefined }, /^tag is missing/],
  ['a tag with a space', { ...definition, tag: 'pay outs' }, /^tag is not a valid tag/],
  ['a name that is a number', { ...definition, name: 7 }, /^name is number/],
  [
    'a misspelled property',
    { ...definition, systemPromt: 'x' },
    /^systemPromt is not a known property; did you mean "systemPrompt"/,
  ],
  ['no model', { ...definition, model: undefined }, /^model is missing/],
  ['a model without provider', { ...definition, model: { model: 'x' } }, /^model\.provider is missing/],
  ['an unknown property of the model', { ...definition, model: { ...model, temprature: 1 } }, /^model\.temprature/],
  ['no tools', { ...definition, tools: undefined }, /^tools is missing/],
  ['tools that are a map', { ...definition, tools: {} }, /^tools is object, expected an array/],
  ['a tool that is nothing', { ...definition, tools: [null] }, /^tools\[0\] is null/],
  ['a tool without handler', { ...definition, tools: [{ tag: 'a' }] }, /^tools\[0\]\.handler is missing/],
  [
    'a handler that is not a function',
    { ...definition, tools: [{ tag: 'a', handler: 'x' }] },
    /^tools\[0\]\.handler is not a function/,
  ],
  [
    'a tool tag that providers reject',
    { ...definition, tools: [{ tag: 'a/b', handler }] },
    /^tools\[0\]\.tag is not a valid tag/,
  ],
  ['two tools of one tag', { ...definition, tools: [refund, refund] }, /^tools\[1\]\.tag is a duplicate/],
  [
    'requiresConfirmation as a text',
    tool({}, { requiresConfirmation: 'true' }),
    /^tools\[0\]\.requiresConfirmation is string/,
  ],
  ['a misspelt property of a tool', tool({}, { requireConfirmation: true }), /did you mean "requiresConfirmation"/],
  ['a parameter without type', tool({ a: {} }), /^tools\[0\]\.parameters\.a\.type is missing/],
  [
    'a parameter of an unknown type',
    tool({ a: { type: 'date' } }),
    /^tools\[0\]\.parameters\.a\.type is string, expected one of/,
  ],
  ['a list of types', tool({ a: { type: ['string', 'null'] } }), /^tools\[0\]\.parameters\.a\.type is an array/],
  ['a parameter as a text', tool({ a: 'string' }), /^tools\[0\]\.parameters\.a is string/],
  [
    'required as a list',
    tool({ a: { type: 'object', required: ['b'] } }),
    /\.a\.required is an array.*\.a\.allOf is the place for/,
  ],
  [
    'an unknown keyword',
    tool({ a: { type: 'number', minimun: 0 } }),
    /\.a is not a JSON Schema: strict mode: unknown keyword: "minimun"/,
  ],
  ['a keyword of a wrong type', tool({ a: { type: 'number', minimum: '0' } }), /\.a is not a JSON Schema/],
  ['a keyword of another type', tool({ a: { type: 'string', minimum: 0 } }), /\.a is not a JSON Schema/],
  ['an invalid pattern', tool({ a: { type: 'string', pattern: '(' } }), /\.a is not a JSON Schema/],
  ['an unknown format', tool({ a: { type: 'string', format: 'iban' } }), /\.a is not a JSON Schema/],
  [
    'a reference',
    tool({ a: { type: 'object', properties: { b: { $ref: 'http://x' } } } }),
    /\.a\.properties\.b\.\$ref is not allowed/,
  ],
  [
    'a default that does not match its type',
    tool({ a: { type: 'number', default: 'x' } }),
    /\.a\.default does not match/,
  ],
  ['a function in a schema', tool({ a: { type: 'number', default: () => 1 } }), /\.a\.default/],
  ['a parameter named for a prototype', tool({ ['__proto__']: { type: 'string' } }), /__proto__/],
  ['a parameter named constructor', tool({ constructor: { type: 'string' } }), /\.constructor is not an allowed name/],
  ['a parameter with a space', tool({ 'a b': { type: 'string' } }), /a b is not a valid name/],
  ['enabled as a text', loop({ enabled: 'yes' }), /^humanInLoop\.enabled is string/],
  ['a misspelt property of humanInLoop', loop({ enable: true }), /did you mean "enabled"/],
  [
    'an unknown tool in alwaysRequireApproval',
    loop({ enabled: true, alwaysRequireApproval: ['refnd'] }),
    /alwaysRequireApproval\[0\] is not a tool of this agent; did you mean "refund"/,
  ],
  ['a time-out that is too short', loop({ approvalTimeout: 999 }), /^humanInLoop\.approvalTimeout/],
  ['a time-out that is too long', loop({ approvalTimeout: 31_536_000_001 }), /^humanInLoop\.approvalTimeout/],
  ['a validity that is too short', loop({ approvalValidFor: 999 }), /^humanInLoop\.approvalValidFor/],
  ['half a millisecond', loop({ approvalTimeout: 1000.5 }), /^humanInLoop\.approvalTimeout/],
  ['NaN', loop({ approvalTimeout: Number.NaN }), /^humanInLoop\.approvalTimeout/],
  ['a webhook that is no URL', loop({ approvalWebhook: 'ops' }), /^humanInLoop\.approvalWebhook is not a URL/],
  [
    'a webhook without TLS',
    loop({ approvalWebhook: 'http://ops.example/' }),
    /^humanInLoop\.approvalWebhook is not https/,
  ],
  [
    'a webhook on a name that only starts like a loopback address',
    loop({ approvalWebhook: 'http://127.0.0.1.example/' }),
    /is not https/,
  ],
  ['a webhook with a password', loop({ approvalWebhook: 'https://a:b@ops.example/' }), /contains credentials/],
  ['a webhook of another scheme', loop({ approvalWebhook: 'file:///etc/passwd' }), /is not an https URL/],
  [
    'a webhook without callback settings',
    loop({ enabled: true, approvalWebhook: 'https://ops.example/' }),
    /needs approvals\.callbackBase.*needs approvals\.callbackKey/,
    { brokers: [], callbackBase: false, callbackKey: false },
  ],
  [
    'a broker that is not configured',
    loop({ enabled: true, approvalBroker: { broker: 'buss', event: 'e' } }),
    /approvalBroker\.broker is not a broker of svc\.config; did you mean "bus"/,
  ],
  ['a broker without event', loop({ approvalBroker: { broker: 'bus' } }), /approvalBroker\.event is missing/],
  [
    'two tags with one name for a model',
    { ...definition, tools: ['a.b', 'a_b'].map((tag) => ({ tag, handler })) },
    /^tools\[1\]\.tag is the same name as "a\.b" for a model, which reads "a_b"/,
  ],
  ['an empty event', loop({ approvalBroker: { broker: 'bus', event: '' } }), /approvalBroker\.event is empty/],
  ['no steps', { ...definition, limits: { steps: 0 } }, /^limits\.steps/],
  ['a negative duration', { ...definition, limits: { durationMs: -1 } }, /^limits\.durationMs/],
];

for (const [what, definition, where, surroundings = around] of MISTAKES) {
  test(`rejected: ${what}`, () => {
    assert.throws(
      () => assertApprovalSettings(compileAgent(definition), surroundings),
      (error: unknown) => {
        assert.ok(isSvcError(error), String(error));
        assert.equal(error.code, 'agent_invalid');
        assert.match(error.why ?? '', where);
        return true;
      },
    );
  });
}

test('every mistake is reported at once', () => {
  const definition = {
    ...tool({ a: { type: 'date' } }),
    humanInLoop: { alwaysRequireApproval: ['x'], approvalTimeout: 1 },
  };
  assert.throws(
    () => compileAgent(definition),
    (error: unknown) => isSvcError(error) && (error.details.problems as string[]).length === 3,
  );
});

function rules(parameters: object) {
  const compiled: CompiledAgent = compileAgent(tool(parameters));
  const refund = compiled.tools.get('refund')!;
  // Only that of a Standard Schema is asynchronous.
  return { ...refund, validate: refund.validate as (value: unknown) => ParameterValidation };
}

test('no coercion, unknown parameters rejected, defaults filled in', () => {
  const { validate } = rules({
    amount: { type: 'number', required: true, minimum: 0 },
    currency: { type: 'string', enum: ['EUR', 'USD'], default: 'EUR' },
  });
  const good = validate({ amount: 5 });
  assert.ok(good.ok);
  assert.deepEqual({ ...good.parameters }, { amount: 5, currency: 'EUR' });
  const problemsOf = (value: unknown) => {
    const checked = validate(value);
    assert.ok(!checked.ok);
    return checked.problems.map(({ parameter }) => parameter);
  };
  assert.deepEqual(problemsOf({ amount: '5' }), ['amount']);
  assert.deepEqual(problemsOf({ amount: 5, amuont: 5 }), ['amuont']);
  assert.deepEqual(problemsOf({}), ['amount']);
  assert.deepEqual(problemsOf({ amount: -1, currency: 'eur' }), ['amount', 'currency']);
  assert.deepEqual(problemsOf({ amount: Number.POSITIVE_INFINITY }), ['amount']);
  assert.deepEqual(problemsOf([]), ['']);
  assert.deepEqual(problemsOf('{"amount": 5}'), ['']);
});

test('items are unique by value, in time that does not grow with their square', () => {
  const items = { type: 'array', uniqueItems: true } as const;
  const { validate } = rules({ items });
  const many = Array.from({ length: 50_000 }, (_, a) => ({ a, b: [a] }));
  assert.equal(validate({ items: many }).ok, true);
  assert.deepEqual(validate({ items: [...many, { b: [7], a: 7 }] }), {
    ok: false,
    problems: [{ parameter: 'items', why: 'must not have duplicate items' }],
  });
  assert.equal(validate({ items: [1, '1', true, null, [1], {}] }).ok, true);
  assert.equal(validate({ items: [1, 1.0] }).ok, false);
});

test('validated parameters are a frozen copy without prototypes', () => {
  const { validate } = rules({ list: { type: 'array' }, thing: { type: 'object' } });
  const given = { list: [{ a: 1 }], thing: { b: { c: 2 } } };
  const checked = validate(given);
  assert.ok(checked.ok);
  given.list[0]!.a = 9;
  const { list, thing } = checked.parameters as { list: { a: number }[]; thing: { b: object } };
  assert.equal(list[0]!.a, 1);
  for (const one of [checked.parameters, list[0]!, thing, thing.b]) {
    assert.equal(Object.getPrototypeOf(one), null);
    assert.ok(Object.isFrozen(one));
  }
});

test('names that change a prototype and text that databases reject are rejected at every depth', () => {
  const { validate } = rules({ thing: { type: 'object' }, text: { type: 'string' } });
  for (const text of [
    '{"__proto__": {"admin": true}}',
    '{"constructor": 1}',
    '{"thing": {"__proto__": {"admin": true}}}',
    '{"thing": {"a": [{"prototype": 1}]}}',
    '{"text": "a\\u0000b"}',
    '{"text": "\\ud800"}',
  ]) {
    assert.equal(validate(JSON.parse(text)).ok, false, text);
  }
  let deep: object = {};
  for (let level = 0; level < 100_000; level++) deep = { deep };
  assert.equal(validate({ thing: deep }).ok, false);
  assert.equal(validate({ text: 'a 👍 is a whole pair' }).ok, true);
});

test('a problem never quotes the value', () => {
  const { validate } = rules({ token: { type: 'string', pattern: '^[a-z]+$', maxLength: 3, enum: ['abc'] } });
  const checked = validate({ token: 'SECRET-1', other: 'SECRET-2' });
  assert.ok(!JSON.stringify(checked).includes('SECRET'), JSON.stringify(checked));
});

test('the stored schema validates as the definition does', () => {
  const { validate, schema } = rules({
    amount: { type: 'integer', required: true },
    note: { type: 'string', default: '' },
  });
  const stored = storedValidator(JSON.parse(JSON.stringify(schema)));
  for (const value of [{ amount: 1 }, { amount: 1.5 }, {}, { amount: 1, x: 1 }, null]) {
    assert.deepEqual(JSON.parse(JSON.stringify(stored(value))), JSON.parse(JSON.stringify(validate(value))));
  }
});

test('sensitive is found at every depth and not sent to a model', () => {
  const { sensitive, schema } = rules({
    card: { type: 'object', properties: { number: { type: 'string', sensitive: true } } },
    pin: { type: 'string', sensitive: true },
    amount: { type: 'number' },
  });
  assert.deepEqual(sensitive, ['card', 'pin']);
  assert.ok(!JSON.stringify(schema).includes('sensitive'));
});

test('the digest covers what runs and what reviewers read, and nothing else', () => {
  const digest = (more: object) =>
    compileAgent({ ...definition, tools: [{ ...refund, ...more }] }).tools.get('refund')!.digest;
  const same = digest({});
  assert.equal(digest({ handler: () => 1 }), same);
  assert.equal(digest({ description: '' }), same);
  assert.equal(digest({ requiresConfirmation: true }), same);
  for (const more of [
    { description: 'Other.' },
    { idempotent: true },
    { parameters: { amount: { type: 'number', required: true, minimum: 1 } } },
    { parameters: { amount: { type: 'number', required: true, sensitive: true } } },
    { parameters: { sum: { type: 'number', required: true } } },
  ]) {
    assert.notEqual(digest(more), same, JSON.stringify(more));
  }
});

const config = { product: 'shop', env: 'dev', config: {} };

test('enabled: false warns once and names every tool that runs without approval', async () => {
  const svc = new Svc(config);
  const warned: string[] = [];
  const onWarning = (warning: Error) => warned.push(warning.message);
  process.on('warning', onWarning);
  const tools = [
    { tag: 'refund', requiresConfirmation: true, handler },
    { tag: 'wire', handler },
    { tag: 'look', handler },
  ];
  await svc.agents.define({ tag: 'payouts', model, tools, humanInLoop: { alwaysRequireApproval: ['wire'] } });
  await svc.agents.define({ tag: 'quiet', model, tools: [{ tag: 'look', handler }] });
  await new Promise(setImmediate);
  process.off('warning', onWarning);
  await svc.close();
  assert.equal(warned.length, 1, warned.join('\n'));
  assert.match(warned[0]!, /"payouts" is not enabled: the tools refund, wire run without approval/);
});

test('changing the object after define changes no tool and removes no gate', async () => {
  const svc = new Svc(config);
  const ran: string[] = [];
  const turns = [{ calls: [{ tool: 'wire', parameters: { to: 'bank' } }] }, { text: 'Done.' }];
  const parameters = { to: { type: 'string', enum: ['bank'] } } as const;
  const tools = [{ tag: 'wire', requiresConfirmation: true, parameters, handler: () => ran.push('wire') }];
  const humanInLoop = { enabled: true, alwaysRequireApproval: ['wire'] };
  const definition = { tag: 'payouts', model: { ...model, settings: { turns } }, tools, humanInLoop };
  const agent = svc.agents.define(definition);
  const gate = svc.gate({ agentTag: 'payouts', tools, humanInLoop });
  Object.assign(humanInLoop, { enabled: false }).alwaysRequireApproval.pop();
  Object.assign(tools[0]!, { requiresConfirmation: false });
  Object.assign(parameters.to.enum, ['thief']);
  const stop = new AbortController();
  const called = gate.run(
    { tool: 'wire', parameters: { to: 'bank' } },
    { signal: stop.signal, onRequested: () => stop.abort() },
  );
  assert.equal((await called).status, 'cancelled');
  const run = agent.run({ prompt: 'Go.' });
  for await (const event of run) {
    if (event.type !== 'approval_requested') continue;
    const { definition: shown } = await svc.approvals.get(event.request.requestId);
    assert.deepEqual((shown!.schema as { properties: unknown }).properties, { to: { type: 'string', enum: ['bank'] } });
    await run.cancel();
  }
  assert.deepEqual(ran, []);
  await svc.close();
});

test('a definition is usable at once; awaited, it rejects what svc.config does not allow', async () => {
  const svc = new Svc(config);
  const agent = svc.agents.define({ tag: 'payouts', model, tools: [] });
  assert.equal(agent.tag, 'payouts');
  assert.equal((await agent).name, 'payouts');
  assert.throws(() => svc.agents.define({ tag: 'payouts', model, tools: [] }), { code: 'agent_taken' });
  const define = (tag: string, more: object) => svc.agents.define({ tag, model, tools: [], ...more });
  const provider = { model: { provider: 'opnai', model: 'x' } };
  const error = await expectError(Promise.resolve(define('a', provider)), 'agent_invalid');
  assert.match(`${error.why} ${error.next}`, /model\.provider.*Did you mean "openai"/);
  const webhook = { humanInLoop: { enabled: true, approvalWebhook: 'https://ops.example/' } };
  await expectError(Promise.resolve(define('b', webhook)), 'agent_invalid');
  const unawaited = define('c', webhook).run({ prompt: 'Go.' });
  await expectError(unawaited.result, 'agent_invalid');
  await svc.close();
});

test('awaiting a definition finds everything that a run would fail on', async () => {
  const approvals = { callbackBase: 'https://shop.example/svc', callbackKey: 'k'.repeat(32) };
  const url = 'https://ops.example/';
  const cases: [object, object, ErrorCode, RegExp][] = [
    [{ ...approvals, callbackKey: 'short' }, {}, 'config_invalid', /callbackKey is too short/],
    [{ ...approvals, webhook: { secrets: { [url]: ['whsec_!'] } } }, {}, 'config_invalid', /whsec_ followed by 24/],
    [{ ...approvals, webhook: { secrets: { [url]: [undefined] } } }, {}, 'config_invalid', /entry of .* is undefined/],
    [{ ...approvals, channels: { ops: { type: 'slak' } } }, {}, 'name_unknown', /slak/],
    [approvals, { model: { provider: 'mistral', model: 'x' } }, 'driver_missing', /npm install @ai-sdk\/mistral@3/],
    [approvals, { model: { provider: 'scripted', model: 'x', settings: {} } }, 'agent_invalid', /settings\.turns/],
  ];
  for (const [settings, more, code, message] of cases) {
    const svc = new Svc({ ...config, config: { approvals: settings } });
    const humanInLoop = { enabled: true, approvalWebhook: url };
    const define = (tag: string) => svc.agents.define({ tag, model, tools: [], humanInLoop, ...more });
    const error = await expectError(Promise.resolve(define('a')), code);
    assert.match([error.message, error.why, ...error.next].join(' '), message);
    await expectError(define('b').run({ prompt: 'Go.' }).result, code);
    await svc.close();
  }
});

test('not enabled: nothing is demanded that only an approval needs', async () => {
  const unusable = { callbackKey: 'short', channels: { ops: { type: 'slak' } } };
  for (const approvals of [{}, unusable, { webhook: { secrets: { 'https://ops.example/': ['whsec_!'] } } }]) {
    const svc = new Svc({ ...config, config: { approvals } });
    const humanInLoop = {
      enabled: false,
      approvalWebhook: 'https://ops.example/',
      approvalBroker: { broker: 'bus', event: 'approval' },
    };
    const tools = [{ tag: 'look', handler: () => 'seen' }];
    const turns = [{ calls: [{ tool: 'look' }] }, { text: 'Done.' }];
    const agent = await svc.agents.define({ tag: 'a', model: { ...model, settings: { turns } }, tools, humanInLoop });
    assert.equal((await agent.run({ prompt: 'Go.' }).result).text, 'Done.');
    const outcome = await svc.gate({ agentTag: 'a', tools, humanInLoop }).run({ tool: 'look', parameters: {} });
    assert.equal(outcome.result, 'seen');
    await svc.close();
  }
});

test('a tag with dots and colons is called by the name that models take', async () => {
  const svc = new Svc(config);
  const tools = ['payments.refund', 'db:drop-table'].map((tag) => ({ tag, handler: () => `${tag} ran` }));
  const seen: string[] = [];
  const turns = (conversation: Conversation) => {
    const calls = conversation.turns.flatMap((turn) => turn.calls);
    seen.push(calls.map(({ tool, result }) => `${tool}: ${result}`).join());
    return calls.length > 0
      ? { text: 'Done.' }
      : { calls: ['payments_refund', 'db:drop-table'].map((tool) => ({ tool })) };
  };
  const agent = svc.agents.define({ tag: 'a', model: { ...model, settings: { turns } }, tools });
  const { text, steps } = await agent.run({ prompt: 'Go.' }).result;
  assert.equal(text, 'Done.');
  assert.deepEqual(
    steps[0]!.calls.map(({ tool, result }) => [tool, result]),
    tools.map(({ tag }) => [tag, `${tag} ran`]),
  );
  assert.deepEqual(seen, ['', 'payments_refund: payments.refund ran,db_drop-table: db:drop-table ran']);
  const gate = svc.gate({ agentTag: 'a', tools });
  assert.equal((await gate.run({ tool: 'db:drop-table', parameters: {} })).result, 'db:drop-table ran');
  await svc.close();
});

test('a script is a list of turns, of functions, or one function; a wrong turn fails the run', async () => {
  const svc = new Svc(config);
  const done = { text: 'Done.' };
  for (const [turns, expected] of [
    [[done], 'Done.'],
    [[() => done], 'Done.'],
    [({ prompt }: Conversation) => ({ text: prompt }), 'Go.'],
    [() => undefined, 'The script has no turn 1, which the run needs.'],
    [[], 'The script has no turn 1, which the run needs.'],
    [() => ({ calls: [{ tol: 'look' }] }), 'Turn 1 of the script is not valid. calls[0].tol is not a known property'],
  ] as const) {
    const agent = svc.agents.define({ tag: `a${Math.random()}`, model: { ...model, settings: { turns } }, tools: [] });
    const { text, error } = await agent.run({ prompt: 'Go.' }).result;
    assert.equal((error?.message ?? text).split(';')[0], expected);
  }
  await svc.close();
});

test('a provider whose package is missing is rejected with the install command, and nothing is stored', async () => {
  const svc = new Svc(config);
  const agent = svc.agents.define({ tag: 'payouts', model: { provider: 'mistral', model: 'x' }, tools: [] });
  const error = await expectError(agent.run({ prompt: 'Go.' }).result, 'driver_missing');
  assert.deepEqual(error.next, ['npm install @ai-sdk/mistral@3']);
  assert.deepEqual((await svc.agents.list()).records, []);
  await svc.close();
});

test('an invalid run request is rejected at once', async () => {
  const svc = new Svc(config);
  const agent = svc.agents.define({ tag: 'payouts', model, tools: [] });
  for (const request of [undefined, {}, { prompt: '' }, { prompt: ' ' }, { prompt: 7 }, { prompt: 'x', signal: {} }]) {
    assert.throws(() => agent.run(request as { prompt: string }), { code: 'run_invalid' }, JSON.stringify(request));
  }
  await svc.close();
});

test('handlers get the types of their parameters', () => {
  const svc = new Svc(config);
  const pay = (orderId: string, amount: number, note?: string) => `${orderId} ${amount} ${note}`;
  const lookUp = defineTool({
    tag: 'look_up',
    parameters: { id: { type: 'string', required: true } },
    handler: (_ctx, { id }) => id.length,
  });
  svc.agents.define({
    tag: 'payouts',
    model,
    tools: [
      {
        tag: 'refund',
        parameters: {
          orderId: { type: 'string', required: true },
          amount: { type: 'number', default: 1 },
          note: { type: 'string' },
          kind: { type: 'string', enum: ['a', 'b'], required: true },
          lines: { type: 'array', items: { type: 'string' }, required: true },
        },
        handler: (ctx, params) => {
          const kind: 'a' | 'b' = params.kind;
          return [pay(params.orderId, params.amount, params.note), kind, params.lines.join(), ctx.idempotencyKey];
        },
      },
      lookUp,
      { tag: 'now', handler: () => Date.now() },
    ],
  });
  const wrong = () =>
    svc.agents.define({
      tag: 'wrong',
      model,
      // @ts-expect-error: there is no such type
      tools: [{ tag: 'a', parameters: { a: { type: 'date' } }, handler }],
    });
  assert.throws(wrong, { code: 'agent_invalid' });
});
