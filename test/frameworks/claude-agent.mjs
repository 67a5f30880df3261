import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';
import { approvalHooks, withApproval } from '../../plugins/frameworks/claude-agent.ts';
import { folder } from '../kit/folder.ts';

/**
 * A server of the Messages API: one turn with these calls, which a sub-agent makes if there is a `delegation`, then one with a
 * text. `received` gets what the model reads as the
 * tools' results, which is followed by what hooks add.
 */
async function serve(calls, received, delegation) {
  const turn = (messages) => {
    const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
    const results = blocks.filter(({ type }) => type === 'tool_result');
    const isDelegating = delegation && !JSON.stringify(messages[0]).includes(delegation.args.prompt);
    if (isDelegating && results.length > 0) return [{ type: 'text', text: 'Done.' }];
    const requests = isDelegating ? [delegation] : calls;
    if (results.length === 0)
      return requests.map(({ id, name, args }) => ({ type: 'tool_use', id, name, input: args }));
    const added = blocks.slice(blocks.indexOf(results.at(-1)) + 1).map(({ text }) => text);
    for (const { tool_use_id, content } of results) received.push([tool_use_id, JSON.stringify([content, added])]);
    return [{ type: 'text', text: 'Done.' }];
  };
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    if (!/^\/v1\/messages\b(?!\/)/.test(request.url)) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (type, data) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
    const { messages, model } = JSON.parse(body);
    const content = turn(messages);
    const usage = { input_tokens: 1, output_tokens: 1 };
    send('message_start', { message: { id: 'msg_1', type: 'message', role: 'assistant', model, content: [], usage } });
    for (const [index, { text, input, ...block }] of content.entries()) {
      const isText = block.type === 'text';
      send('content_block_start', { index, content_block: { ...block, ...(isText ? { text: '' } : { input: {} }) } });
      const delta = isText
        ? { type: 'text_delta', text }
        : { type: 'input_json_delta', partial_json: JSON.stringify(input) };
      send('content_block_delta', { index, delta });
      send('content_block_stop', { index });
    }
    send('message_delta', { delta: { stop_reason: content[0].type === 'text' ? 'end_turn' : 'tool_use' }, usage });
    send('message_stop', {});
    response.end();
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  server.unref();
  return `http://127.0.0.1:${server.address().port}`;
}

/** Options that read no settings of the machine, and send nothing elsewhere. */
async function optionsFor(calls, received, home, delegation) {
  return {
    cwd: tmpdir(),
    env: {
      PATH: process.env.PATH,
      HOME: home,
      CLAUDE_CONFIG_DIR: home,
      ANTHROPIC_BASE_URL: await serve(calls, received, delegation),
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // A killed test leaves it without its server.
      CLAUDE_CODE_MAX_RETRIES: '0',
    },
    model: 'claude-sonnet-4-5',
    settingSources: [],
    tools: [],
  };
}

/** Runs these calls of built-in tools. Returns the id of each and what the model reads as its result. */
async function runCalls(calls, options, home = folder()) {
  const received = [];
  const all = { ...(await optionsFor(calls, received, home)), ...options };
  for await (const { type, terminal_reason } of query({ prompt: openPrompt('Continue.'), options: all }))
    if (type === 'result' && terminal_reason !== 'tool_deferred_unavailable') break;
  return received;
}

/** After a string, Claude hears no hook once it has a first result. */
async function* openPrompt(content) {
  yield { type: 'user', message: { role: 'user', content }, parent_tool_use_id: null };
  await new Promise(() => {});
}

const ofServer = (call) => ({ ...call, name: `mcp__shop__${call.name}` });

const DELEGATION = {
  id: 'd1',
  name: 'Agent',
  args: { description: 'Pays money back.', prompt: 'Pay it back.', subagent_type: 'payouts', run_in_background: false },
};

const PAGE_CALLS = [{ id: 'c1', name: 'refund', args: { orderId: '1234', amount: 20 } }];
export const pageReceived = [];
/** Options of the program of the docs, without an account. */
export const account = await optionsFor(PAGE_CALLS.map(ofServer), pageReceived, process.env.TEST_HOME ?? folder());

const result = (text) => ({ content: [{ type: 'text', text }] });

/** @param byHooks whether `approvalHooks` gates the tools, and not `withApproval`. */
export const hostOf = ({ byHooks }) => ({
  runCalls,
  async open({
    gate,
    calls,
    executionId,
    wait,
    onRequested,
    refund,
    lookup,
    changedSchema,
    renamed,
    onPart,
    subAgent,
    mcpServer,
  }) {
    const shape = { amount: changedSchema ? z.number().max(1000) : z.number(), note: z.string().default('none') };
    const name = renamed ? 'pay' : 'refund';
    const description = 'Pays money back.';
    const gated = tool(name, description, shape, async (args) => result(await refund(args)));
    const free = tool('lookup', 'Looks.', {}, async () => result(await lookup()));
    const own = withApproval(gate, [gated], { executionId, wait, onRequested });
    const named = { [`mcp__shop__${name}`]: { description, inputSchema: z.object(shape) } };
    const usesHooks = byHooks || mcpServer;
    const hooks = usesHooks ? approvalHooks(gate, { tools: named, executionId, wait, onRequested }) : own.hooks;
    const ownTools = usesHooks ? [gated] : own.tools;
    const tools = mcpServer ? [free] : [...ownTools, free];
    const sdkServer = createSdkMcpServer({ name: 'shop', alwaysLoad: true, tools });
    const mcpServers = mcpServer ? { shop: { ...mcpServer, alwaysLoad: true }, own: sdkServer } : { shop: sdkServer };
    const namedCalls = calls.map((call) =>
      mcpServer && call.name === 'lookup' ? { ...call, name: 'mcp__own__lookup' } : ofServer(call),
    );
    const received = [];
    const run = async (home, prompt, more) => {
      const options = {
        ...(await optionsFor(namedCalls, received, home, subAgent && DELEGATION)),
        mcpServers,
        allowedTools: [`mcp__shop__${name}`, 'mcp__shop__lookup', 'mcp__own__lookup', 'Agent'],
        hooks,
        includePartialMessages: onPart !== undefined,
        ...(subAgent && { tools: ['Agent'], agents: { payouts: { description, prompt: 'You pay.' } } }),
        ...more,
      };
      const results = [];
      for await (const message of query({ prompt, options })) {
        onPart?.(message);
        if (message.type !== 'result') continue;
        results.push(message);
        // A session may resume before it has its server; the turn of the prompt has it.
        if (message.terminal_reason !== 'tool_deferred_unavailable' || results.length > 1) break;
      }
      const ended = results.at(-1) ?? {};
      const [project = ''] = readdirSync(join(home, 'projects'));
      const file = join('projects', project, `${ended.session_id}.jsonl`);
      const state = { sessionId: ended.session_id, file, text: readFileSync(join(home, file), 'utf8') };
      return { suspended: ended.deferred_tool_use !== undefined, state: JSON.stringify(state), received };
    };
    return {
      start(signal) {
        const abortController = new AbortController();
        signal?.addEventListener('abort', () => abortController.abort());
        return run(folder(), 'Refund it.', { abortController });
      },
      resume(state) {
        const { sessionId, file, text } = JSON.parse(state);
        const home = folder();
        mkdirSync(join(home, file, '..'), { recursive: true });
        writeFileSync(join(home, file), text);
        return run(home, openPrompt('Continue.'), { resume: sessionId });
      },
    };
  },
});

export default hostOf({ byHooks: false });
