import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage } from '@langchain/core/messages';
import { createAgent, humanInTheLoopMiddleware } from 'langchain';
import { payingTool, Threads } from './langgraph-threads.mjs';
import { callOf, DONE, runIn } from './script.mjs';

export class Scripted extends BaseChatModel {
  _llmType() {
    return 'scripted';
  }

  bindTools() {
    return this;
  }

  async _generate(messages) {
    const isLast = messages.at(-1).getType() === 'tool';
    const prompt = messages.find((one) => one.getType() === 'human')?.content ?? '';
    const message = isLast
      ? new AIMessage(DONE)
      : new AIMessage({ content: '', tool_calls: [callOf(runIn(String(prompt)))] });
    return { generations: [{ text: '', message }] };
  }
}

const decisionOf = (run, { approve, amount }) => {
  if (!approve) return { type: 'reject', message: 'rejected' };
  if (amount === undefined) return { type: 'approve' };
  return { type: 'edit', editedAction: { name: 'refund', args: { orderId: run, amount } } };
};

export default {
  name: 'LangChain HITL',
  packages: ['langchain'],
  async open({ url, effects, renamed }) {
    const threads = await Threads.open({ url, effects });
    const agent = createAgent({
      model: new Scripted({}),
      tools: [payingTool(renamed, effects)],
      middleware: [
        humanInTheLoopMiddleware({ interruptOn: { refund: { allowedDecisions: ['approve', 'edit', 'reject'] } } }),
      ],
      checkpointer: threads.checkpointer,
    });
    return threads.system(agent, (run, verdict) => ({ decisions: [decisionOf(run, verdict)] }));
  },
};
