import { crashSuite } from './kit/crash-suite.ts';
import { engines } from './kit/engines.ts';

for (const engine of engines) crashSuite(engine);
