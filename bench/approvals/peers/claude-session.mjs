import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';
import { OwnTable } from './own-table.mjs';
import { callOf, DONE, promptOf, runIn } from './script.mjs';

const SERVER = 'shop';
const usage = { input_tokens: 1, output_tokens: 1 };

/** Starts a server of the Messages API with the scripted model. Returns its address. */
async function serveModel() {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    if (!/^\/v1\/messages\b(?!\/)/.test(request.url)) return response.writeHead(404).end();
    const { messages, model } = JSON.parse(body);
    const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
    const isLast = blocks.some(({ type }) => type === 'tool_result');
    const { id, name, args } = callOf(runIn(JSON.stringify(messages).replaceAll(/["\\]/g, ' ')));
    const [block, delta, stop_reason] = isLast
      ? [{ type: 'text', text: '' }, { type: 'text_delta', text: DONE }, 'end_turn']
      : [
          { type: 'tool_use', id, name: `mcp__${SERVER}__${name}`, input: {} },
          { type: 'input_json_delta', partial_json: JSON.stringify(args) },
          'tool_use',
        ];
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (type, data) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
    send('message_start', { message: { id: 'msg_1', type: 'message', role: 'assistant', model, content: [], usage } });
    send('content_block_start', { index: 0, content_block: block });
    send('content_block_delta', { index: 0, delta });
    send('content_block_stop', { index: 0 });
    send('message_delta', { delta: { stop_reason }, usage });
    send('message_stop', {});
    response.end();
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  server.unref();
  return `http://127.0.0.1:${server.address().port}`;
}

/** After a string, Claude hears no hook once it has a first result. */
async function* openPrompt(content) {
  yield { type: 'user', message: { role: 'user', content }, parent_tool_use_id: null };
  await new Promise(() => {});
}

export const refundOf = (effects, renamed) => {
  const amountName = renamed ? 'sum' : 'amount';
  const shape = { orderId: z.string(), [amountName]: z.number() };
  return tool('refund', 'Pays.', shape, async ({ orderId, ...rest }) => ({
    content: [{ type: 'text', text: JSON.stringify(await effects.pay(orderId, rest[amountName])) }],
  }));
};

/** Sessions of the Claude Agent SDK with the scripted model. Their files are stored in a table between two queries. */
export class Sessions {
  #table;
  #address;
  #home = mkdtempSync(join(tmpdir(), 'svc-bench-claude-'));

  static async open(effects) {
    const sessions = new Sessions();
    process.once('exit', () => rmSync(sessions.#home, { recursive: true, force: true }));
    sessions.#table = await OwnTable.open(effects);
    sessions.#address = await serveModel();
    return sessions;
  }

  start(run, parts) {
    return this.#query(run, promptOf(run), { ...parts, home: this.#newHome() });
  }

  async resume(run, parts) {
    const { sessionId, file, text } = JSON.parse(await this.#table.get(run));
    const home = this.#newHome();
    const path = join(home, file);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, text);
    return this.#query(run, openPrompt('Continue.'), { ...parts, home, resume: sessionId });
  }

  list() {
    return this.#table.waiting();
  }

  tamper(run) {
    return this.#table.tamper(run);
  }

  /** Of one query, as in a process of its own. */
  #newHome() {
    return mkdtempSync(join(this.#home, 'query-'));
  }

  async #query(run, prompt, { tools, hooks, resume, home }) {
    const options = {
      cwd: this.#home,
      env: {
        PATH: process.env.PATH,
        HOME: home,
        CLAUDE_CONFIG_DIR: home,
        ANTHROPIC_BASE_URL: this.#address,
        ANTHROPIC_API_KEY: 'none',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        CLAUDE_CODE_MAX_RETRIES: '0',
      },
      model: 'claude-sonnet-4-5',
      settingSources: [],
      tools: [],
      mcpServers: { [SERVER]: createSdkMcpServer({ name: SERVER, alwaysLoad: true, tools }) },
      allowedTools: [`mcp__${SERVER}__refund`],
      hooks,
      ...(resume && { resume }),
    };
    const results = [];
    for await (const message of query({ prompt, options })) {
      if (message.type !== 'result') continue;
      results.push(message);
      // A session may resume before it has its server; the turn of the prompt has it.
      if (message.terminal_reason !== 'tool_deferred_unavailable' || results.length > 1) break;
    }
    const ended = results.at(-1);
    const waits = ended.deferred_tool_use !== undefined;
    const [project] = readdirSync(join(home, 'projects'));
    const file = join('projects', project, `${ended.session_id}.jsonl`);
    const text = readFileSync(join(home, file), 'utf8');
    await this.#table.put(run, JSON.stringify({ sessionId: ended.session_id, file, text }), waits);
    rmSync(home, { recursive: true, force: true });
    return waits ? 'waits' : ended.result;
  }
}
