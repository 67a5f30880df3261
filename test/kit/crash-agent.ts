import type { ToolContext } from '../../core/agent/tool.ts';
import { agentOf } from './agent-host.ts';

const say = { parameters: { what: { type: 'string', required: true } } };
const call = (tool: string, what: string) => ({ tool, parameters: { what } });

/** Tools of this agent whose handlers must never run twice for one call. */
export const ONCE = ['look', 'pay'];
export const CALLS = ['look first', 'pay first', 'note first', 'pay second', 'look second'];

/** An agent of three turns, with tools of every kind; `effect` is what its handlers do to the world. */
export function crashAgent(effect: (name: string, ctx: ToolContext) => Promise<void>): object {
  const handler = (tool: string) => async (ctx: ToolContext, params: { readonly what: string }) => {
    await effect(`${tool} ${params.what}`, ctx);
    return `${tool} ${params.what} done`;
  };
  const turns = [
    { text: 'First.', calls: [call('look', 'first'), call('pay', 'first'), call('note', 'first')] },
    { text: 'Second.', calls: [call('pay', 'second'), call('look', 'second')] },
    { text: 'Done.' },
  ];
  const tools = [
    { tag: 'look', ...say, handler: handler('look') },
    { tag: 'note', ...say, idempotent: true, handler: handler('note') },
    { tag: 'pay', ...say, requiresConfirmation: true, handler: handler('pay') },
  ];
  return agentOf(turns, { tools, humanInLoop: { enabled: true } });
}
