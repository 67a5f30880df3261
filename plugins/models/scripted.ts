import type { Conversation, ModelEvent, ModelProvider, ScriptedTurn } from '../../core/agent/model.ts';
import { SvcError } from '../../core/errors.ts';
import { isPlainObject } from '../../core/json.ts';
import { definePlugin } from '../../core/plugin.ts';

type Script = readonly (ScriptedTurn | ((conversation: Conversation) => ScriptedTurn))[];

/** Replays `settings.turns`, for tests and demos. The number of turns in the conversation selects the next one. */
function scripted(script: Script): ModelProvider {
  return {
    async *turn(conversation, _tools, signal): AsyncGenerator<ModelEvent> {
      const index = conversation.turns.length;
      const next = script[index];
      if (next === undefined) {
        throw new SvcError('model_failed', `The script has only ${script.length} turns, and the run needs another.`);
      }
      const { text = '', calls = [] } = typeof next === 'function' ? next(conversation) : next;
      signal.throwIfAborted();
      if (text !== '') yield { type: 'text', text };
      for (const [position, { tool, parameters = {} }] of calls.entries()) {
        yield { type: 'tool_call', id: `call_${index}_${position}`, tool, parameters };
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
      throw new SvcError('agent_invalid', 'A scripted model needs settings.turns.', {
        next: ["model: { provider: 'scripted', model: 'demo', settings: { turns: [{ text: 'Hello.' }] } }"],
      });
    });
  },
});
