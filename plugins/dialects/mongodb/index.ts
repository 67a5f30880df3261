import { definePlugin } from '../../../core/plugin.ts';
import { mongodb } from './dialect.ts';

export default definePlugin({
  name: 'mongodb',
  apply(kernel) {
    kernel.dialects.register(mongodb.name, mongodb);
  },
});
