interface TableCase<Name extends string> {
  readonly title: string;
  readonly impossible?: Partial<Record<Name, string>> | undefined;
}

/** The table of the docs of a suite that runs in several products: how each case ended in this process, or why it is impossible. */
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
    /** A product that needs a newer Node than this one has no results here. */
    text(): string {
      const rows = cases.map(({ title, impossible }) =>
        row([title, ...names.map((name) => impossible?.[name] ?? results.get(`${name} ${title}`) ?? 'yes')]),
      );
      const titles = names.map((name) => products[name]);
      return [row(['', ...titles]), row(['---', ...names.map(() => '---')]), ...rows].join('\n');
    },
  };
}
