import * as assert from 'node:assert/strict';
import type { Conversation, ModelEvent, ModelProvider, ModelTool } from '../../core/agent/model.ts';
import type { Json } from '../../core/json.ts';
import { suite, type TestFunction, type UnderTest } from './suite.ts';

/** The reply of a fake model in one turn. */
export interface ScriptedReply {
  readonly text?: string;
  /** `parameters` as the model writes them, which may be invalid JSON. */
  readonly calls?: readonly { readonly tool: string; readonly parameters: string }[];
  /** `error`: it responds with an error. `disconnect`: the response is cut off after the text. */
  readonly fails?: 'error' | 'disconnect';
}

export interface OpenModel {
  readonly provider: ModelProvider;
  /** The requests that the model received so far, one text per turn. */
  requests(): readonly string[];
  close(): Promise<void>;
}

export interface ModelUnderTest extends UnderTest {
  /** Opens a provider whose model gives these replies: a fake server on 127.0.0.1 with the real wire format. */
  open(replies: readonly ScriptedReply[]): Promise<OpenModel>;
}

const TOOL: ModelTool = {
  tag: 'refund',
  description: 'Pays money back.',
  schema: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] },
};
const START: Conversation = { system: 'You pay money back.', prompt: 'Refund order 1234.', turns: [] };

/** Tests that a model provider fulfills its contract. */
export function modelSuite(test: TestFunction, model: ModelUnderTest): void {
  suite(test, model, (declare) => {
    const on = (
      name: string,
      promise: string,
      replies: readonly ScriptedReply[],
      body: (open: OpenModel) => Promise<void>,
    ): boolean =>
      declare(
        name,
        async () => {
          const open = await model.open(replies);
          try {
            await body(open);
          } finally {
            await open.close();
          }
        },
        { promise },
      );

    on(
      'a turn yields its text, its calls and its token counts',
      '`turn` yields the `text` in pieces, a `tool_call` for each call with its parameters as JSON and an id that is unique in the turn, and one `finished` at the end with integer token counts.',
      [{ text: 'I look first, and then I pay.', calls: [call({ amount: 1 }), call({ amount: 2, note: 'it\'s "ß"' })] }],
      async ({ provider }) => {
        const events = await turn(provider);
        assert.equal(textOf(events), 'I look first, and then I pay.');
        const calls = callsOf(events);
        assert.deepEqual(
          calls.map(({ tool, parameters }) => ({ tool, parameters })),
          [
            { tool: 'refund', parameters: { amount: 1 } },
            { tool: 'refund', parameters: { amount: 2, note: 'it\'s "ß"' } },
          ],
        );
        assert.equal(new Set(calls.map(({ id }) => id)).size, 2, 'two calls of one turn have the same id');
        assert.deepEqual(
          events.flatMap(({ type }, at) => (type === 'finished' ? [at] : [])),
          [events.length - 1],
        );
        const end = events.at(-1);
        assert.ok(
          end?.type === 'finished' && isCount(end.inputTokens) && isCount(end.outputTokens),
          JSON.stringify(end),
        );
      },
    );

    on(
      'the model receives earlier turns, results and the names of changed parameters',
      'The model receives the system prompt, the prompt, the tools, and for every earlier turn its text, calls, results, names of `changed` parameters and `providerState`.',
      [{ text: 'First.', calls: [call({ amount: 20 })] }, { text: 'Second.' }],
      async ({ provider, requests }) => {
        const events = await turn(provider);
        const end = events.at(-1);
        const [call] = callsOf(events);
        assert.ok(call && end?.type === 'finished');
        const turns = [
          {
            text: textOf(events),
            calls: [{ ...call, parameters: { amount: 15 }, result: { paid: 'result-4711' }, changed: ['amount'] }],
            ...(end.providerState !== undefined && { providerState: end.providerState }),
          },
        ];
        assert.equal(textOf(await turn(provider, { ...START, turns })), 'Second.');
        const [first = '', second = ''] = requests();
        for (const text of [START.system, START.prompt, TOOL.tag])
          assert.ok(first.includes(text), `${text} in ${first}`);
        for (const text of ['First.', 'result-4711', 'amount'])
          assert.ok(second.includes(text), `${text} in ${second}`);
      },
    );

    on(
      'parameters that are not JSON are returned as text',
      'A call with invalid JSON is a `tool_call` with `malformed: true`, and `parameters` is the text that the model wrote.',
      [{ calls: [{ tool: 'refund', parameters: '{"amount": 2' }] }],
      async ({ provider }) => {
        const [call] = callsOf(await turn(provider));
        assert.deepEqual([call?.malformed, call?.parameters], [true, '{"amount": 2']);
      },
    );

    for (const fails of ['error', 'disconnect'] as const) {
      on(
        fails === 'error' ? 'a failed request is an error' : 'a turn that is cut off is an error',
        '`turn` throws if the model did not end the turn, and yields no `finished`.',
        // More than any provider retries.
        Array.from({ length: 10 }, () => ({ text: 'I was about to', fails })),
        async ({ provider }) => {
          const { events, error } = await attempt(provider, new AbortController().signal);
          assert.ok(error !== undefined, `it ended with ${JSON.stringify(events.at(-1))}`);
          assert.ok(!events.some(({ type }) => type === 'finished'), JSON.stringify(events));
        },
      );
    }

    on(
      'an aborted turn stops',
      'Once its signal is aborted, `turn` throws and yields no `finished`.',
      [{ text: 'Never received.' }],
      async ({ provider }) => {
        const stop = new AbortController();
        stop.abort(new Error('The run was cancelled.'));
        const { events, error } = await attempt(provider, stop.signal);
        assert.ok(error !== undefined && !events.some(({ type }) => type === 'finished'), JSON.stringify(events));
      },
    );
  });
}

const call = (parameters: Json) => ({ tool: TOOL.tag, parameters: JSON.stringify(parameters) });

const isCount = (value: number): boolean => Number.isInteger(value) && value >= 0;

async function turn(provider: ModelProvider, conversation: Conversation = START): Promise<ModelEvent[]> {
  const { events, error } = await attempt(provider, new AbortController().signal, conversation);
  if (error !== undefined) throw error;
  return events;
}

async function attempt(
  provider: ModelProvider,
  signal: AbortSignal,
  conversation: Conversation = START,
): Promise<{ events: ModelEvent[]; error?: unknown }> {
  const events: ModelEvent[] = [];
  try {
    for await (const event of provider.turn(conversation, [TOOL], signal)) events.push(event);
    return { events };
  } catch (error) {
    return { events, error: error ?? new Error('It threw undefined.') };
  }
}

const textOf = (events: readonly ModelEvent[]): string =>
  events.map((event) => (event.type === 'text' ? event.text : '')).join('');

const callsOf = (events: readonly ModelEvent[]) =>
  events.flatMap((event) => {
    if (event.type !== 'tool_call') return [];
    const { type: _, ...rest } = event;
    return [rest];
  });
