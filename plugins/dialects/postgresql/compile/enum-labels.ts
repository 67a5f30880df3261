import { tokenize } from './tokens.ts';

interface EnumLabels {
  /** Each quoted. */
  readonly labels: readonly string[];
  /** The former names, from comments after the new ones: `'fine' -- renamedFrom 'ok'`. */
  readonly former: ReadonlyMap<string, string>;
}

/** The labels of a native enum; undefined for another type. */
export function enumLabels(definition: string): EnumLabels | undefined {
  const all = [...tokenize(definition)];
  const at = all.findIndex(({ text }, index) => text === 'enum' && all[index - 1]?.text === 'as');
  if (at < 0) return undefined;
  const labels: string[] = [];
  const former = new Map<string, string>();
  for (const { kind, text } of all.slice(at)) {
    if (kind === 'quoted') labels.push(text);
    const name = kind === 'comment' ? /\brenamedFrom\s+('(?:[^']|'')*')/.exec(text)?.[1] : undefined;
    const label = labels.at(-1);
    if (name !== undefined && label !== undefined) former.set(label, name);
  }
  return { labels, former };
}

/** The new name of each label that was renamed. A text that says so may be the one before: then it is renamed back. */
export function renamedLabels(was: EnumLabels, after: EnumLabels): ReadonlyMap<string, string> {
  const pairs = [...[...after.former].map(([to, from]) => [from, to] as const), ...was.former];
  return new Map(
    pairs.filter(
      ([from, to]) =>
        was.labels.includes(from) &&
        !was.labels.includes(to) &&
        after.labels.includes(to) &&
        !after.labels.includes(from),
    ),
  );
}
