import { lockRules } from './lock-rules.ts';
import { typeRules } from './type-rules.ts';

export default [...lockRules, ...typeRules];
