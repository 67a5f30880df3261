import type { ToolContext } from '../../core/tool/tool.ts';
import { agentDefinition } from './agent-host.ts';

const say = { parameters: { what: { type: 'string', required: true } } };
const call = (tool: string, what: string) => ({ tool, parameters: { what } });

/** Tools whose handlers must not run twice for one call. */
export const ONCE = ['look', 'pay'];
export const CALLS = ['look first', 'pay first', 'note first', 'pay second', 'look second'];

/** An agent with three turns and every kind of tool. `effect` is the side effect of its handlers. */
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
  return agentDefinition(turns, { tools, humanInLoop: { enabled: true } });
}
