import * as assert from 'node:assert/strict';
import type { Conversation, ModelEvent, ModelProvider, ModelTool } from '../../core/agent/model.ts';
import type { Json } from '../../core/json.ts';
import { suite, type TestFunction, type UnderTest } from './suite.ts';

/** What the model behind a provider says in a turn. */
export interface ScriptedReply {
  readonly text?: string;
  /** `parameters` as the model writes them: JSON, or what should have been JSON. */
  readonly calls?: readonly { readonly tool: string; readonly parameters: string }[];
  /** It answers with an error, or its answer breaks off after the text. */
  readonly fails?: 'refused' | 'cut';
}

export interface OpenModel {
  readonly provider: ModelProvider;
  /** What the model was sent so far, a text for each turn. */
  asked(): readonly string[];
  close(): Promise<void>;
}

export interface ModelUnderTest extends UnderTest {
  /** A provider whose model says this, turn by turn: a stand-in on 127.0.0.1 that speaks the wire format of the real one. */
  open(turns: readonly ScriptedReply[]): Promise<OpenModel>;
}

const TOOL: ModelTool = {
  tag: 'refund',
  description: 'Pays money back.',
  schema: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] },
};
const START: Conversation = { system: 'You pay money back.', prompt: 'Refund order 1234.', turns: [] };

/** What an agent's run relies on, of whatever provider a model is had from. */
export function modelSuite(test: TestFunction, model: ModelUnderTest): void {
  suite(test, model, (declare) => {
    const on = (
      name: string,
      promise: string,
      says: readonly ScriptedReply[],
      body: (open: OpenModel) => Promise<void>,
    ): boolean =>
      declare(
        name,
        async () => {
          const open = await model.open(says);
          try {
            await body(open);
          } finally {
            await open.close();
          }
        },
        { promise },
      );

    on(
      'a turn is its text and its calls, and an end that says what it cost',
      '`turn` yields `text` in pieces that make the whole, a `tool_call` for each call with the parameters as JSON and an id that is its own in the turn, and `finished` once, last, with whole numbers of tokens.',
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
        assert.equal(new Set(calls.map(({ id }) => id)).size, 2, 'two calls of one turn have one id');
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
      'the model sees what was said and done before, and what a human changed',
      'The model is sent the system prompt, the prompt, the tools, and of every earlier turn its text, its calls, their results and the names of `changed` parameters; `providerState` of a turn goes back with it.',
      [{ text: 'First.', calls: [call({ amount: 20 })] }, { text: 'Second.' }],
      async ({ provider, asked }) => {
        const events = await turn(provider);
        const end = events.at(-1);
        const [made] = callsOf(events);
        assert.ok(made && end?.type === 'finished');
        const turns = [
          {
            text: textOf(events),
            calls: [{ ...made, parameters: { amount: 15 }, result: { paid: 'result-4711' }, changed: ['amount'] }],
            ...(end.providerState !== undefined && { providerState: end.providerState }),
          },
        ];
        assert.equal(textOf(await turn(provider, { ...START, turns })), 'Second.');
        const [first = '', second = ''] = asked();
        for (const said of [START.system, START.prompt, TOOL.tag])
          assert.ok(first.includes(said), `${said} in ${first}`);
        for (const said of ['First.', 'result-4711', 'amount'])
          assert.ok(second.includes(said), `${said} in ${second}`);
      },
    );

    on(
      'parameters that are no JSON are handed on as they are',
      'A call whose parameters cannot be read is a `tool_call` with `malformed: true`, and `parameters` is the text that the model wrote: nothing is guessed, and nothing is thrown.',
      [{ calls: [{ tool: 'refund', parameters: '{"amount": 2' }] }],
      async ({ provider }) => {
        const [made] = callsOf(await turn(provider));
        assert.deepEqual([made?.malformed, made?.parameters], [true, '{"amount": 2']);
      },
    );

    for (const fails of ['refused', 'cut'] as const) {
      on(
        fails === 'refused' ? 'a model that cannot be had is an error' : 'a turn that breaks off is an error',
        'A turn that the model did not end throws, and yields no `finished`: half a turn is never taken for a whole one.',
        // Once more than anybody tries again.
        Array.from({ length: 10 }, () => ({ text: 'I was about to', fails })),
        async ({ provider }) => {
          const { events, error } = await attempt(provider, new AbortController().signal);
          assert.ok(error !== undefined, `it ended with ${JSON.stringify(events.at(-1))}`);
          assert.ok(!events.some(({ type }) => type === 'finished'), JSON.stringify(events));
        },
      );
    }

    on(
      'who is no longer wanted stops',
      'Once its signal is aborted, `turn` throws and yields no `finished`.',
      [{ text: 'Never heard.' }],
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
    return { events, error: error ?? new Error('It threw nothing at all.') };
  }
}

const textOf = (events: readonly ModelEvent[]): string =>
  events.map((event) => (event.type === 'text' ? event.text : '')).join('');

const callsOf = (events: readonly ModelEvent[]) =>
  events.flatMap((event) => {
    if (event.type !== 'tool_call') return [];
    const { type: _, ...made } = event;
    return [made];
  });
