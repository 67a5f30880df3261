import * as assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { sqlEngines } from './kit/engines.ts';
import { ENGINE_TITLES, remadeLine, remadeRows } from './kit/remade-table.ts';
import { grownOn, remake } from './kit/remake.ts';
import { test } from './kit/test.ts';

const page = readFileSync(new URL('../docs/reference/adoption.md', import.meta.url), 'utf8').split('\n');

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
        const remade = await remake(engine, grown);
        assert.deepEqual(remade.silent, []);
        assert.deepEqual(remade.said, [...grown.said].sort());
        const title = ENGINE_TITLES[engine.name] ?? engine.name;
        const { counts, reasons } = remadeRows(title, grown.cases, remade);
        assert.deepEqual(
          page.filter((line) => line.includes(` | ${title} | `)),
          [...counts, ...reasons].map(remadeLine),
          'npm run bench -- adoption writes docs/reference/adoption.md',
        );
      },
      // Some five hundred cases, on a busy machine.
      { timeoutMs: 600_000 },
    );
}
