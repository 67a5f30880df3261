import { crashSuite } from './kit/crash-suite.ts';
import { committingEngines } from './kit/engines.ts';

for (const engine of committingEngines.filter(({ name }) => name === 'mysql')) crashSuite(engine);
