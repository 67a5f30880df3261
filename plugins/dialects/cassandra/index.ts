import { definePlugin } from '../../../core/plugin.ts';
import { cassandra } from './dialect.ts';

export default definePlugin({
  name: 'cassandra',
  apply(kernel) {
    kernel.dialects.register('cassandra', cassandra);
  },
});
