import { definePlugin } from '../../../core/plugin.ts';
import { providers } from './providers.ts';

export default definePlugin({
  name: 'ai-sdk',
  apply(kernel) {
    for (const [name, major] of Object.entries(providers)) {
      // A plugin of the user may have registered its own.
      if (kernel.models.has(name)) continue;
      kernel.models.register(name, async (options) => {
        const { openModel } = await import('./open-model.ts');
        return openModel({ name, package: `@ai-sdk/${name}`, major }, options);
      });
    }
  },
});
