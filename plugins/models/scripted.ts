import type { Conversation, ModelEvent, ModelProvider, ScriptedTurn } from '../../core/agent/model.ts';
import { SvcError } from '../../core/errors.ts';
import { isPlainObject } from '../../core/json.ts';
import { definePlugin } from '../../core/plugin.ts';
import { problemText, type Shape, shapeProblems } from '../../core/validate-shape.ts';

type NextTurn = (conversation: Conversation) => ScriptedTurn | undefined;

/** Replays `settings.turns`, for tests and demos. */
function scripted(nextTurn: NextTurn): ModelProvider {
  return {
    async *turn(conversation, _tools, signal): AsyncGenerator<ModelEvent> {
      const index = conversation.turns.length;
      const { text = '', calls = [] } = assertTurn(nextTurn(conversation), index);
      signal.throwIfAborted();
      if (text !== '') yield { type: 'text', text };
      for (const [position, { tool, parameters = {} }] of calls.entries()) {
        yield { type: 'tool_call', id: `call_${index}_${position}`, tool, parameters };
      }
      yield { type: 'finished', inputTokens: 0, outputTokens: 0 };
    },
  };
}

/** The entry for the next turn of a list, or the result of a function. */
function scriptOf(turns: unknown): NextTurn | undefined {
  if (typeof turns === 'function') return turns as NextTurn;
  if (!Array.isArray(turns) || !turns.every((turn) => isPlainObject(turn) || typeof turn === 'function'))
    return undefined;
  return (conversation) => {
    const next: ScriptedTurn | NextTurn | undefined = turns[conversation.turns.length];
    return typeof next === 'function' ? next(conversation) : next;
  };
}

const TURN: Shape = {
  properties: {
    text: 'string',
    calls: { list: { properties: { tool: 'string', parameters: 'any' }, required: ['tool'] } },
  },
};

function assertTurn(turn: ScriptedTurn | undefined, index: number): ScriptedTurn {
  if (turn === undefined)
    throw new SvcError('model_failed', `The script has no turn ${index + 1}, which the run needs.`);
  const problems = shapeProblems(turn, TURN);
  if (problems.length === 0) return turn;
  throw new SvcError('model_failed', `Turn ${index + 1} of the script is not valid.`, {
    why: problems.map(problemText).join(' '),
  });
}

export default definePlugin({
  name: 'scripted',
  apply(kernel) {
    kernel.models.register('scripted', ({ settings }) => {
      const nextTurn = scriptOf(settings.turns);
      if (nextTurn) return scripted(nextTurn);
      throw new SvcError('agent_invalid', 'A scripted model needs settings.turns.', {
        next: ["model: { provider: 'scripted', model: 'demo', settings: { turns: [{ text: 'Hello.' }] } }"],
      });
    });
  },
});
