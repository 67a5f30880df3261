import { createAgent, createMiddleware } from 'langchain';
import { approvalMiddleware } from '../../plugins/frameworks/langchain.ts';
import { openRuns, Scripted } from './langgraph-runs.mjs';

const PAGE_CALLS = [{ id: 'c1', name: 'refund', args: { orderId: '1234', amount: 20 } }];
export const pageReceived = [];
/** The model of the program of the docs. */
export const model = new Scripted(PAGE_CALLS, pageReceived);

function withGate(gate, tools, options) {
  const named = { ...options, tools: tools.map(({ name }) => name) };
  return { tools, middleware: [createMiddleware(approvalMiddleware(gate, named))] };
}

export default {
  open: (options) => openRuns(options, { withGate, agentOf: createAgent }),
};
