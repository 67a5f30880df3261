import * as assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { folder } from './kit/folder.ts';
import { terminal } from './kit/terminal.ts';
import { test } from './kit/test.ts';

// The agent stops at its gate, and the typed answer decides.

const script = fileURLToPath(new URL('../examples/refund/run.ts', import.meta.url));
const QUESTION = 'Let payouts call refund in shop, dev, with 20 EUR? [y]es, [n]o, or another amount: ';

const cases = [
  {
    summary: 'yes',
    keys: ['y'],
    expected: ['it pays 20 EUR for order 1234, approved by you', '{"paid":20}', 'approved by you'],
  },
  {
    summary: 'yes, but less, after an amount that the tool does not take',
    keys: ['50', '15'],
    expected: ['it pays 15 EUR for order 1234, approved by you', '{"paid":15}', 'approved by you'],
  },
  {
    summary: 'no',
    keys: ['n'],
    expected: ['"error":"approval_rejected"', 'Not without a return slip.', 'rejected by you'],
    never: 'The handler runs',
  },
] as const;

for (const { summary, keys, expected, ...more } of cases) {
  test(
    `the refund example on a terminal: ${summary}`,
    async () => {
      const cwd = await folder();
      const screen = terminal([], { cwd, script });
      for (const [asked, key] of keys.entries()) {
        await screen.until(new RegExp(`(?:${QUESTION.replace(/[?[\]]/g, '\\$&')}[^]*){${asked + 1}}`));
        screen.type(`${key}\r`);
      }
      assert.equal(await screen.ended, 0, screen.shown());
      const shown = screen.shown();
      for (const text of [...expected, 'The run is completed.']) assert.ok(shown.includes(text), `${text}\n${shown}`);
      if ('never' in more) assert.ok(!shown.includes(more.never), shown);
      assert.equal(shown.split(QUESTION).length - 1 >= keys.length, true, 'asked once for each answer');
    },
    { timeoutMs: 120_000 },
  );
}
