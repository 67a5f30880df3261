import { definePlugin } from '../../../core/plugin.ts';
import { postgresql } from './dialect.ts';

export default definePlugin({
  name: 'postgresql',
  apply(kernel) {
    kernel.dialects.register('postgresql', postgresql);
  },
});
