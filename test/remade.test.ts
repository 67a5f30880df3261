import * as assert from 'node:assert/strict';
import { sqlEngines } from './kit/engines.ts';
import { grownOn, remake } from './kit/remake.ts';
import { test } from './kit/test.ts';

/**
 * A database made again from the files that `pull` wrote is the same one, by every fact of its catalog. What is not the same is
 * in a warning: nothing is lost in silence.
 */
for (const engine of sqlEngines) {
  const title = `${engine.name}: a table that was pulled and made again is the same, or a warning says what is not`;
  if (engine.missing !== undefined) test.skip(title, engine.missing);
  else
    test(
      title,
      async () => {
        const grown = grownOn(engine);
        const { said, silent } = await remake(engine, grown);
        assert.deepEqual(silent, []);
        assert.deepEqual(said, [...grown.said].sort());
      },
      // Some five hundred cases, on a busy machine.
      { timeoutMs: 600_000 },
    );
}
