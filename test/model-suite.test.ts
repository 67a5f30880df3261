import type { Conversation } from '../core/agent/model.ts';
import type { Json } from '../core/json.ts';
import { Kernel } from '../core/kernel.ts';
import { applyPlugin } from '../core/plugin.ts';
import aiSdk from '../plugins/models/ai-sdk/index.ts';
import scripted from '../plugins/models/scripted.ts';
import { ModelServer } from './kit/model-server.ts';
import { test } from './kit/test.ts';
import { modelSuite } from './suites/model-suite.ts';

const kernel = new Kernel();
applyPlugin(kernel, aiSdk, 'test');
applyPlugin(kernel, scripted, 'test');

for (const [name, model] of [
  ['openai', 'gpt-5'],
  ['anthropic', 'claude-sonnet-4-5'],
] as const) {
  modelSuite(test, {
    name,
    async open(turns) {
      const server = new ModelServer();
      const baseURL = await server.listen();
      const headers = { 'retry-after-ms': '1' };
      for (const { fails, calls, ...said } of turns) {
        if (fails === 'error')
          server.replies.push({ status: 500, headers, body: { error: { message: 'Out of order.' } } });
        else
          server.replies.push({
            ...said,
            ...(calls && {
              calls: calls.map(({ tool, parameters }, at) => ({ id: `call_${at}`, name: tool, args: parameters })),
            }),
            ...(fails === 'disconnect' && { disconnects: true }),
          });
      }
      return {
        provider: await kernel.models.get(name)({ model, settings: { baseURL, apiKey: 'none' } }),
        requests: () => server.requests.map(({ body }) => JSON.stringify(body)),
        close: () => server.close(),
      };
    },
  });
}

modelSuite(test, {
  name: 'scripted',
  skip: {
    'parameters that are not JSON are returned as text': 'a script contains parameters as values',
    'a turn that is cut off is an error': 'a script is never truncated',
  },
  async open(turns) {
    const requests: string[] = [];
    const script = turns.map(({ text = '', calls = [], fails }) => (conversation: Conversation) => {
      if (fails) throw new Error('Out of order.');
      requests.push(JSON.stringify([conversation, 'refund']));
      return {
        text,
        calls: calls.map(({ tool, parameters }) => ({ tool, parameters: JSON.parse(parameters) as Json })),
      };
    });
    const provider = await kernel.models.get('scripted')({ model: 'demo', settings: { turns: script } });
    return { provider, requests: () => requests, close: async () => {} };
  },
});
