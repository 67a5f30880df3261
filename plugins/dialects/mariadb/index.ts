import { definePlugin } from '../../../core/plugin.ts';
import { mariadb } from './dialect.ts';

export default definePlugin({
  name: 'mariadb',
  apply(kernel) {
    kernel.dialects.register('mariadb', mariadb);
  },
});
