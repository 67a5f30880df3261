import { definePlugin } from '../../../core/plugin.ts';
import { consoleChannel } from './channel.ts';

export default definePlugin({
  name: 'console',
  apply(kernel) {
    kernel.channels.register('console', () => consoleChannel((line) => process.stderr.write(`${line}\n`)));
  },
});
