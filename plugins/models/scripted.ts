import type { Conversation, ModelEvent, ModelProvider, ScriptedTurn } from '../../core/agent/model.ts';
import { SvcError } from '../../core/errors.ts';
import { isPlainObject } from '../../core/json.ts';
import { definePlugin } from '../../core/plugin.ts';

type Script = readonly (ScriptedTurn | ((conversation: Conversation) => ScriptedTurn))[];

/** Replays `settings.turns`, for tests and demonstrations: which turn it is, the conversation tells. */
function scripted(script: Script): ModelProvider {
  return {
    async *turn(conversation, _tools, signal): AsyncGenerator<ModelEvent> {
      const at = conversation.turns.length;
      const next = script[at];
      if (next === undefined) {
        throw new SvcError(
          'model_failed',
          `The script has ${script.length} turns, and the model was asked for another.`,
        );
      }
      const { text = '', calls = [] } = typeof next === 'function' ? next(conversation) : next;
      signal.throwIfAborted();
      if (text !== '') yield { type: 'text', text };
      for (const [index, { tool, parameters = {} }] of calls.entries()) {
        yield { type: 'tool_call', id: `call_${at}_${index}`, tool, parameters };
      }
      yield { type: 'finished', inputTokens: 0, outputTokens: 0 };
    },
  };
}

function isTurn(turn: unknown): boolean {
  return isPlainObject(turn) || typeof turn === 'function';
}

export default definePlugin({
  name: 'scripted',
  apply(kernel) {
    kernel.models.register('scripted', ({ settings }) => {
      const { turns } = settings;
      if (Array.isArray(turns) && turns.every(isTurn)) return scripted(turns as Script);
      throw new SvcError('agent_invalid', 'A scripted model needs its turns.', {
        next: ["model: { provider: 'scripted', model: 'demo', settings: { turns: [{ text: 'Hello.' }] } }"],
      });
    });
  },
});
