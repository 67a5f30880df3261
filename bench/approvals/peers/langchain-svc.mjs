import { createAgent, createMiddleware } from 'langchain';
import { approvalMiddleware } from '../../../dist/plugins/frameworks/langchain.js';
import { Scripted } from './langchain.mjs';
import { openGated } from './langgraph-svc.mjs';

/** As langchain.mjs, with the middleware of svc in place of LangChain's. */
export default {
  name: 'LangChain with svc',
  packages: [],
  open: (context) =>
    openGated(context, ({ gate, refund, checkpointer, options }) => {
      const middleware = [createMiddleware(approvalMiddleware(gate, { ...options, tools: ['refund'] }))];
      return createAgent({ model: new Scripted({}), tools: [refund], middleware, checkpointer });
    }),
};
