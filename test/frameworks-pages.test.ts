import * as assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { HOSTS, type HostName, own, reasonToSkip } from './frameworks/hosts.ts';
import type { Ended } from './frameworks/run.ts';
import { textOf } from './frameworks/with-host.ts';
import { docsBlocks } from './kit/docs-blocks.ts';
import { test } from './kit/test.ts';

// The program of each framework's page, run as printed with a model of the suite in frameworks.test.ts.

const PAGES: Readonly<Partial<Record<HostName, string>>> = {
  'ai-sdk': 'docs/how-to/use-the-ai-sdk.md',
  'openai-agents': 'docs/how-to/use-openai-agents.md',
  langchain: 'docs/how-to/use-langchain.md',
  genkit: 'docs/how-to/use-genkit.md',
  mastra: 'docs/how-to/use-mastra.md',
  'claude-agent': 'docs/how-to/use-claude-agent.md',
};

for (const [host, page] of Object.entries(PAGES) as [HostName, string][]) {
  const reason = reasonToSkip(host);
  const title = `${HOSTS[host]}: the program of its page runs as printed`;
  if (reason !== undefined) test.skip(title, reason);
  else
    test(title, async () => {
      const block = docsBlocks().find((one) => one.page === page && one.language === 'ts');
      assert.ok(block && block.text.trim().split('\n').length < 30);
      const source = block.text
        .replace("'./model.ts'", `'./${host}.mjs'`)
        .replaceAll(/'@svc\/sdk\/(.+)'/g, "'../../plugins/frameworks/$1.ts'")
        .replaceAll("'@svc/sdk'", "'../../config/sdk/index.ts'");
      const file = new URL(`program-${host}.ts`, own);
      writeFileSync(file, source);
      const printed: unknown[] = [];
      const { log } = console;
      console.log = (text: unknown) => printed.push(text);
      try {
        await import(file.href);
      } finally {
        console.log = log;
        rmSync(file);
      }
      const { pageReceived } = (await import(new URL(`${host}.mjs`, own).href)) as { pageReceived: Ended['received'] };
      assert.deepEqual(printed, ['Done.']);
      assert.match(textOf({ received: pageReceived }, 'c1'), /Paid 15 for 1234.*A reviewer changed/s);
    });
}
