import * as assert from 'node:assert/strict';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import { defineTool, Svc } from '../config/sdk/index.ts';
import { DETACH } from '../core/approval/call.ts';
import { storedValidator } from '../core/tool/input-schema.ts';
import { compileTools, type Tool } from '../core/tool/tool.ts';
import { type Problem, problemText } from '../core/validate-shape.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  approve,
  createGate,
  openApprovalProcess,
  refund,
  startCall,
} from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';

// Tools whose parameters are described by a JSON Schema or a Standard Schema.

const handler = () => null;

function compile(definition: object): Tool {
  const problems: Problem[] = [];
  const tool = compileTools([{ tag: 'refund', handler, ...definition }], [], problems).get('refund');
  assert.deepEqual(problems, []);
  assert.ok(tool);
  return tool;
}

function problemsOf(definition: object): string[] {
  const problems: Problem[] = [];
  compileTools([{ tag: 'refund', handler, ...definition }], [], problems);
  return problems.map(problemText);
}

const isValid = async (inputSchema: object, value: unknown) => (await compile({ inputSchema }).validate(value)).ok;

test('a JSON Schema is read as its standard says: nothing is coerced or filled in, unknown keywords are ignored', async () => {
  const inputSchema = {
    type: 'object',
    properties: {
      amount: { type: 'number', default: 5, 'x-unit': 'EUR' },
      email: { type: 'string', format: 'email' },
      note: { type: 'string', nullable: true },
      pair: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }] },
    },
    required: ['email'],
    unevaluatedProperties: false,
  };
  const { validate, schema } = compile({ inputSchema });
  const good = await validate({ email: 'any text', pair: ['a', 1] });
  assert.ok(good.ok);
  assert.deepEqual({ ...good.parameters }, { email: 'any text', pair: ['a', 1] });
  assert.equal(Object.getPrototypeOf(good.input), Object.prototype, 'a handler receives an ordinary object');
  for (const [value, parameter] of [
    [{ email: 'a', amount: '5' }, 'amount'],
    [{ email: 'a', note: null }, 'note'],
    [{ email: 'a', pair: [1, 1] }, 'pair[0]'],
    [{ email: 'a', amuont: 1 }, 'amuont'],
    [{}, 'email'],
    [[], ''],
  ] as const) {
    const result = await validate(value);
    assert.ok(!result.ok, JSON.stringify(value));
    assert.equal(result.problems[0]?.parameter, parameter);
  }
  // Another process reads the stored schema in the same way.
  const stored = storedValidator(JSON.parse(JSON.stringify(schema)));
  assert.equal(stored({ email: 'any text', pair: ['a', 1] }).ok, true);
  assert.equal(stored({ email: 'a', pair: [1, 1] }).ok, false);
});

test('additional properties are allowed unless the schema says otherwise', async () => {
  assert.equal(await isValid({ type: 'object' }, { anything: [1] }), true);
  assert.equal(await isValid({ type: 'object', additionalProperties: false }, { anything: 1 }), false);
});

test('drafts 7 and 2020-12 differ where the standards do, and any other version is rejected', async () => {
  const draft7 = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' };
  const tuple = { properties: { pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }] } } };
  assert.equal(await isValid({ ...draft7, ...tuple }, { pair: ['a', 'b'] }), false);
  assert.equal(await isValid({ ...draft7, ...tuple }, { pair: ['a', 1] }), true);
  assert.match(problemsOf({ inputSchema: tuple })[0]!, /draft 7 needs "\$schema"/);
  const short = { definitions: { short: { type: 'string', maxLength: 2 } } };
  const withRef = { ...short, properties: { code: { $ref: '#/definitions/short', pattern: '^a' } } };
  assert.equal(await isValid({ ...draft7, ...withRef }, { code: 'b' }), true, 'draft 7 ignores what is next to a $ref');
  assert.equal(await isValid(withRef, { code: 'b' }), false);
  assert.equal(await isValid(withRef, { code: 'abc' }), false);
  const draft4 = { $schema: 'http://json-schema.org/draft-04/schema#' };
  assert.match(problemsOf({ inputSchema: draft4 })[0]!, /draft 2020-12 or draft 7/);
});

test('schemas with the same $id do not meet, and recursion works', async () => {
  for (const kind of ['string', 'number']) {
    const part = { $id: 'https://example.com/part', type: kind };
    const inputSchema = { $id: 'https://example.com/tool', properties: { part, again: { $ref: 'part' } } };
    assert.equal(await isValid(inputSchema, { again: kind === 'string' ? 'a' : 1 }), true);
    assert.equal(await isValid(inputSchema, { again: kind === 'string' ? 1 : 'a' }), false);
  }
  const tree = { $defs: { node: { properties: { kids: { items: { $ref: '#/$defs/node' } } } } } };
  const inputSchema = { ...tree, properties: { root: { $ref: '#/$defs/node' } } };
  assert.equal(await isValid(inputSchema, { root: { kids: [{ kids: [] }] } }), true);
  assert.equal(await isValid({ ...inputSchema, required: ['root'] }, {}), false);
});

test('what cannot be a schema of parameters is rejected', () => {
  for (const [definition, expected] of [
    [{ inputSchema: { type: 'string' } }, /inputSchema.type is not "object"/],
    [{ inputSchema: { type: 'nonsense' } }, /inputSchema.type is not "object"/],
    [{ inputSchema: { properties: { a: { type: 'nonsense' } } } }, /is not a JSON Schema/],
    [{ inputSchema: { properties: { a: { $ref: 'https://example.com/other' } } } }, /is not a JSON Schema/],
    [{ inputSchema: 'zod' }, /is not a JSON Schema object or a Standard Schema/],
    [{ inputSchema: { type: 'object' }, parameters: {} }, /use one of them/],
    [{ inputSchema: { type: 'object' }, jsonSchema: {} }, /only for an inputSchema that is a Standard Schema/],
    [{ parameters: {}, sensitive: ['a'] }, /only for a tool with an "inputSchema"/],
    [{ inputSchema: v.object({ a: v.string() }) }, /has no JSON Schema \(valibot\)/],
    [{ inputSchema: z.object({ at: z.date() }) }, /has no JSON Schema \(Date cannot/],
    [{ tag: 'a'.repeat(129), inputSchema: {} }, /1 to 128/],
  ] as const) {
    assert.match(problemsOf(definition).join(' '), expected);
  }
  assert.deepEqual(problemsOf({ tag: 'a'.repeat(128), inputSchema: {} }), []);
});

test('a mark of sensitivity reaches its parameter, through a $ref too, or is rejected', () => {
  const marked = { type: 'string', sensitive: true };
  const inputSchema = {
    $defs: { secret: { allOf: [{ properties: { key: marked } }] } },
    properties: { open: { type: 'string' }, auth: { $ref: '#/$defs/secret' } },
    anyOf: [{ properties: { pin: marked } }, true],
  };
  const tool = compile({ inputSchema, sensitive: ['open'] });
  assert.deepEqual([...tool.sensitive].sort(), ['auth', 'open', 'pin']);
  assert.ok(!JSON.stringify(tool.schema).includes('"sensitive"'), 'models do not see the keyword');
  assert.deepEqual(compile({ inputSchema: { properties: { sensitive: true, nullable: true } } }).schema.properties, {
    sensitive: true,
    nullable: true,
  });
  assert.match(problemsOf({ inputSchema: { patternProperties: { '^a': marked } } })[0]!, /no top-level parameter/);
  assert.match(problemsOf({ inputSchema, sensitive: ['opne'] })[0]!, /did you mean "open"/);
});

const libraries = {
  zod: z.object({ amount: z.number().min(1), note: z.string().default('none') }),
  valibot: toStandardJsonSchema(
    v.object({ amount: v.pipe(v.number(), v.minValue(1)), note: v.optional(v.string(), 'none') }),
  ),
  arktype: type({ amount: 'number >= 1', note: 'string = "none"' }),
} as const;

for (const [name, inputSchema] of Object.entries(libraries)) {
  test(`${name}: what it makes of the parameters, defaults included, is what is approved`, async () => {
    const { validate, schema } = compile({ inputSchema });
    const result = await validate({ amount: 5 });
    assert.ok(result.ok);
    assert.deepEqual(
      [{ ...result.parameters }, result.input],
      [
        { amount: 5, note: 'none' },
        { amount: 5, note: 'none' },
      ],
    );
    const wrong = await validate({ amount: '5' });
    assert.ok(!wrong.ok);
    assert.equal(wrong.problems[0]?.parameter, 'amount');
    assert.equal(storedValidator(schema)({ amount: 0 }).ok, false, 'its JSON Schema is stored');
  });
}

test('what a schema makes of a value that is not JSON goes to the handler only', async () => {
  const day = z.string().transform((text) => new Date(text));
  const { validate } = compile({ inputSchema: z.object({ day, amount: z.coerce.number(), code: z.string().trim() }) });
  const given = { day: '2026-01-02', amount: '5', code: ' a ' };
  const result = await validate(given);
  assert.ok(result.ok);
  assert.deepEqual({ ...result.parameters }, given);
  assert.deepEqual(result.input, { day: new Date('2026-01-02'), amount: 5, code: 'a' });
  const settled = await compile({
    inputSchema: z.object({ amount: z.coerce.number(), code: z.string().trim() }),
  }).validate(given);
  assert.ok(settled.ok);
  assert.deepEqual({ ...settled.parameters }, { amount: 5, code: 'a' });
});

test('a message of a library that quotes a sensitive value is masked', async () => {
  const inputSchema = toStandardJsonSchema(v.object({ key: v.number(), other: v.number() }));
  const result = await compile({ inputSchema, sensitive: ['key'] }).validate({ key: 'SECRET-1', other: 'SECRET-1' });
  assert.ok(!JSON.stringify(result).includes('SECRET'), JSON.stringify(result));
  const throwing = z.object({
    key: z.string().refine((key) => {
      throw new Error(`no ${key}`);
    }),
  });
  const failed = await compile({ inputSchema: throwing, sensitive: ['key'] }).validate({ key: 'SECRET-1' });
  assert.ok(!failed.ok);
  assert.ok(!JSON.stringify(failed).includes('SECRET'), JSON.stringify(failed));
});

test('the digest binds the JSON Schema, the description and the sensitive names', () => {
  const base = { inputSchema: libraries.zod };
  const same = z.object({ amount: z.number().min(1), note: z.string().default('none') });
  assert.equal(compile(base).digest, compile({ inputSchema: same }).digest);
  for (const other of [
    { inputSchema: z.object({ amount: z.number().min(2), note: z.string().default('none') }) },
    { inputSchema: z.object({ amount: z.number().min(1), note: z.string().default('other') }) },
    { ...base, description: 'other' },
    { ...base, sensitive: ['note'] },
  ])
    assert.notEqual(compile(other).digest, compile(base).digest);
});

const amounts = z.object({ amount: z.number().refine((amount) => amount !== 13), note: z.string().default('none') });

/** A gate with one tool, and another process on the same store that does not define it. */
async function withGate(
  definition: object,
  body: (
    gate: ReturnType<typeof createGate>,
    other: ApprovalProcess,
    app: ApprovalProcess,
    ran: unknown[],
  ) => Promise<void>,
): Promise<void> {
  const store = new MemoryStore();
  const [app, other] = [await openApprovalProcess(store), await openApprovalProcess(store)];
  const ran: unknown[] = [];
  const run = (_ctx: unknown, input: unknown) => ran.push(input);
  const tool = compile({ requiresConfirmation: true, handler: run, ...definition });
  try {
    await body(createGate(app, new Map([['refund', tool]])), other, app, ran);
  } finally {
    await app.service.close();
    await other.service.close();
  }
}

test('changes are validated against the JSON Schema by a process without the tool, and by the tool before it runs', () =>
  withGate({ inputSchema: amounts }, async (gate, other, app, ran) => {
    const first = await startCall(gate, refund({ amount: 20 }));
    assert.deepEqual({ ...first.request.parameters }, { amount: 20, note: 'none' });
    await expectError(approve(other, first.request, { amount: '15' }), 'approval_parameters_invalid');
    await expectError(approve(app, first.request, { amount: 13 }), 'approval_parameters_invalid');
    await approve(other, first.request, { amount: 15 });
    assert.equal((await first.outcome).status, 'completed');
    assert.deepEqual(ran, [{ amount: 15, note: 'none' }]);

    const second = await startCall(gate, refund({ amount: 20 }));
    // No JSON Schema says what the refinement says.
    await approve(other, second.request, { amount: 13 });
    const { status, result } = await second.outcome;
    assert.equal(status, 'stale');
    assert.match(JSON.stringify(result), /does not accept the changes of the reviewer/);

    const third = await startCall(gate, refund({ amount: 20 }));
    await approve(other, third.request, { extra: 1 });
    assert.match(JSON.stringify((await third.outcome).result), /reads the changes of the reviewer as other parameters/);
    assert.equal(ran.length, 1);
  }));

test('the handler receives the output of a transformation of what was approved, changes included', () =>
  withGate(
    { inputSchema: z.object({ at: z.string().transform((text) => new Date(text)) }) },
    async (gate, other, _app, ran) => {
      const { request, outcome } = await startCall(gate, refund({ at: '2026-01-02' }));
      assert.deepEqual({ ...request.parameters }, { at: '2026-01-02' });
      await approve(other, request, { at: '2026-01-03' });
      await outcome;
      assert.deepEqual(ran, [{ at: new Date('2026-01-03') }]);
    },
  ));

test('the same call, repeated with another schema, is stale', () =>
  withGate({ inputSchema: amounts }, async (gate, other, _app, ran) => {
    const call = refund({ amount: 20 });
    const leaving = new AbortController();
    const { request, outcome } = await startCall(gate, call, { signal: leaving.signal });
    leaving.abort(DETACH);
    await expectError(outcome, 'interrupted');
    await approve(other, request);
    const changed = compile({
      requiresConfirmation: true,
      inputSchema: amounts.extend({ note: z.string().default('other') }),
    });
    const ended = await createGate(other, new Map([['refund', changed]])).call(call);
    assert.deepEqual([ended.status, ran], ['stale', []]);
  }));

test('types: a handler receives the output of its schema', () => {
  const tools = [
    defineTool({ tag: 'a', inputSchema: libraries.zod, handler: (_ctx, input) => input.note.toUpperCase() }),
    defineTool({ tag: 'b', inputSchema: libraries.valibot, handler: (_ctx, input) => input.note.toUpperCase() }),
    defineTool({ tag: 'c', inputSchema: libraries.arktype, handler: (_ctx, input) => input.amount.toFixed() }),
    defineTool({ tag: 'd', inputSchema: { type: 'object' }, handler: (_ctx, input) => input.any }),
  ] as const;
  const svc = new Svc({ config: { product: 'shop', env: 'dev' } });
  svc.gate({ agentTag: 'x', tools });
  svc.gate({
    agentTag: 'x',
    tools: [
      { tag: 'refund', inputSchema: libraries.zod, handler: (_ctx, input) => input.amount.toFixed() },
      // @ts-expect-error: the schema has no such member.
      { tag: 'other', inputSchema: libraries.zod, handler: (_ctx, input) => input.amuont },
      { tag: 'third', parameters: { a: { type: 'string', required: true } }, handler: (_ctx, { a }) => a.length },
    ],
  });
  assert.deepEqual(Object.keys(tools[0].schema.properties as object), ['amount', 'note']);
});
