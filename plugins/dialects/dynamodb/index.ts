import { definePlugin } from '../../../core/plugin.ts';
import { dynamodb } from './dialect.ts';

export default definePlugin({
  name: 'dynamodb',
  apply(kernel) {
    kernel.dialects.register('dynamodb', dynamodb);
  },
});
