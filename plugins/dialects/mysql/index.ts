import { definePlugin } from '../../../core/plugin.ts';
import { mysql } from './dialect.ts';

export default definePlugin({
  name: 'mysql',
  apply(kernel) {
    kernel.dialects.register('mysql', mysql);
  },
});
