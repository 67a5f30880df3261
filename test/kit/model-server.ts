import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** A reply of the model: `args` is the text that the model wrote, which may be invalid JSON. */
export interface ModelReply {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly args: string }[];
  /** Ends the connection after the text, before the end of the turn. */
  readonly disconnects?: true;
  /** The message of an error event that the provider sends instead of the rest of the turn. */
  readonly fails?: string;
  /** The provider stopped because the maximum length was reached. */
  readonly isTooLong?: true;
}

export interface ErrorReply {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ModelRequest {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, unknown>;
}

type Format = (reply: ModelReply) => readonly (readonly [event: string, data: object])[];

/** Speaks the streaming wire formats of OpenAI's Responses API and of Anthropic's Messages API. */
export class ModelServer {
  readonly requests: ModelRequest[] = [];
  readonly replies: (ModelReply | ErrorReply)[] = [];
  readonly #server = createServer((request, response) => void this.#serve(request, response));

  async listen(): Promise<string> {
    await new Promise<void>((listening) => this.#server.listen(0, '127.0.0.1', listening));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    this.requests.push({ path, headers: request.headers, body: JSON.parse(await text(request)) });
    const answer = this.replies.shift();
    const format: Format | undefined = path.endsWith('/responses')
      ? openai
      : path.endsWith('/messages')
        ? anthropic
        : undefined;
    if (!answer || !format) {
      response.writeHead(404).end('{}');
      return;
    }
    if ('status' in answer) {
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
      response.end(JSON.stringify(answer.body));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const { fails: message } = answer;
    const events = format(message === undefined ? answer : { ...answer, disconnects: true });
    const failure = path.endsWith('/responses')
      ? { type: 'error', sequence_number: events.length, code: 'server_error', message, param: null }
      : { type: 'error', error: { type: 'overloaded_error', message } };
    const all = message === undefined ? events : [...events, ['error', failure] as const];
    for (const [event, data] of all) response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    if (answer.disconnects) response.destroy();
    else response.end();
  }
}

/** A text in pieces, as models stream it. */
function pieces(whole: string): string[] {
  return whole.match(/[\s\S]{1,7}/g) ?? [];
}

const openai: Format = ({ text = '', reasoning, calls = [], disconnects, isTooLong }) => {
  const events: [string, object][] = [];
  const send = (type: string, data: object) => events.push([type, { type, sequence_number: events.length, ...data }]);
  const response = { id: 'resp_1', object: 'response', created_at: 1_700_000_000, model: 'gpt-test', output: [] };
  send('response.created', { response: { ...response, status: 'in_progress' } });
  let at = 0;
  if (reasoning !== undefined) {
    const item = { id: `rs_${at}`, type: 'reasoning', summary: [], encrypted_content: reasoning };
    send('response.output_item.added', { output_index: at, item });
    send('response.output_item.done', { output_index: at, item });
    at += 1;
  }
  if (text !== '') {
    const item = { id: `msg_${at}`, type: 'message', role: 'assistant', content: [] };
    send('response.output_item.added', { output_index: at, item: { ...item, status: 'in_progress' } });
    for (const delta of pieces(text)) {
      send('response.output_text.delta', { item_id: item.id, output_index: at, content_index: 0, delta });
    }
    if (disconnects) return events;
    const content = [{ type: 'output_text', text, annotations: [] }];
    send('response.output_item.done', { output_index: at, item: { ...item, status: 'completed', content } });
    at += 1;
  }
  for (const { id, name, args } of calls) {
    const item = { id: `fc_${at}`, type: 'function_call', call_id: id, name };
    send('response.output_item.added', { output_index: at, item: { ...item, arguments: '', status: 'in_progress' } });
    for (const delta of pieces(args)) {
      send('response.function_call_arguments.delta', { item_id: item.id, output_index: at, delta });
    }
    send('response.function_call_arguments.done', { item_id: item.id, output_index: at, arguments: args });
    const done = { ...item, arguments: args, status: 'completed' };
    send('response.output_item.done', { output_index: at, item: done });
    at += 1;
  }
  const usage = {
    input_tokens: 11,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 7,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 18,
  };
  if (isTooLong) {
    const incomplete = {
      ...response,
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      usage,
    };
    send('response.incomplete', { response: incomplete });
  } else send('response.completed', { response: { ...response, status: 'completed', usage } });
  return events;
};

const anthropic: Format = ({ text = '', reasoning, calls = [], disconnects, isTooLong }) => {
  const events: [string, object][] = [];
  const send = (type: string, data: object) => events.push([type, { type, ...data }]);
  const usage = { input_tokens: 11, output_tokens: 1 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-test', content: [], usage };
  send('message_start', { message: { ...message, stop_reason: null, stop_sequence: null } });
  let index = 0;
  if (reasoning !== undefined) {
    send('content_block_start', { index, content_block: { type: 'thinking', thinking: '' } });
    send('content_block_delta', { index, delta: { type: 'thinking_delta', thinking: 'Hm.' } });
    send('content_block_delta', { index, delta: { type: 'signature_delta', signature: reasoning } });
    send('content_block_stop', { index });
    index += 1;
  }
  if (text !== '') {
    send('content_block_start', { index, content_block: { type: 'text', text: '' } });
    for (const piece of pieces(text)) {
      send('content_block_delta', { index, delta: { type: 'text_delta', text: piece } });
    }
    if (disconnects) return events;
    send('content_block_stop', { index });
    index += 1;
  }
  for (const { id, name, args } of calls) {
    send('content_block_start', { index, content_block: { type: 'tool_use', id, name, input: {} } });
    for (const partial_json of pieces(args)) {
      send('content_block_delta', { index, delta: { type: 'input_json_delta', partial_json } });
    }
    send('content_block_stop', { index });
    index += 1;
  }
  const stop_reason = isTooLong ? 'max_tokens' : calls.length > 0 ? 'tool_use' : 'end_turn';
  send('message_delta', { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 7 } });
  send('message_stop', {});
  return events;
};
