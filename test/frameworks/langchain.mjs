import { createAgent, createMiddleware } from 'langchain';
import { approvalMiddleware } from '../../plugins/frameworks/langchain.ts';
import { openRuns } from './langgraph-runs.mjs';

export { model, pageReceived } from './langgraph-runs.mjs';

function withGate(gate, tools, options) {
  const named = { ...options, tools: tools.map(({ name }) => name) };
  return { tools, middleware: [createMiddleware(approvalMiddleware(gate, named))] };
}

export default {
  open: (options) => openRuns(options, { withGate, agentOf: createAgent }),
};
