import { hostOf } from './claude-agent.mjs';

export default hostOf({ byHooks: true });
