import * as assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

interface TableCase<Name extends string> {
  readonly title: string;
  readonly impossible?: Partial<Record<Name, string>> | undefined;
}

/**
 * The table of docs/reference/frameworks.md of a suite that runs in several products: how each case ended, or why it is
 * impossible. A cell whose case did not run in this process, such as one that needs a newer Node, is as the page has it.
 */
export function resultsTable<Name extends string>(
  products: Readonly<Record<Name, string>>,
  cases: readonly TableCase<Name>[],
) {
  const names = Object.keys(products) as Name[];
  const results = new Map<string, 'yes' | 'no'>();
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return {
    async record(name: Name, title: string, run: () => Promise<void>): Promise<void> {
      results.set(`${name} ${title}`, 'no');
      await run();
      results.set(`${name} ${title}`, 'yes');
    },
    compare(): string {
      const page = readFileSync(new URL('../../docs/reference/frameworks.md', import.meta.url), 'utf8');
      const rows = cases.map(({ title, impossible }) => {
        const [, ...cells] =
          page
            .split('\n')
            .find((line) => line.startsWith(`| ${title} |`))
            ?.split(' | ') ?? [];
        const cellOf = (name: Name, at: number) =>
          impossible?.[name] ?? results.get(`${name} ${title}`) ?? cells[at]?.replace(/ \|$/, '') ?? 'not run';
        return row([title, ...names.map(cellOf)]);
      });
      const titles = names.map((name) => products[name]);
      const table = [row(['', ...titles]), row(['---', ...names.map(() => '---')]), ...rows].join('\n');
      assert.ok(page.includes(table), `docs/reference/frameworks.md has no such table:\n${table}`);
      return page;
    },
  };
}
