import { readFile, writeFile } from 'node:fs/promises';
import { chart } from './chart.ts';
import type { Growth } from './growth.ts';
import type { Measure } from './measures.ts';
import { ratios, type Spread, spread } from './race.ts';
import { table } from './table.ts';

export interface Results {
  /** The argument of `npm run bench -- <subject>`. */
  readonly subject: string;
  readonly measures: readonly Measure[];
  readonly growth: readonly Growth[];
  /** Milliseconds of each tenth of the calls, or the error. */
  readonly calls: readonly number[] | string;
  readonly facts: readonly string[];
  /** False for short or partial runs, which are only printed. */
  readonly isSaved: boolean;
}

/** Prints the results and saves them in results/. */
export async function report(results: Results): Promise<void> {
  const text = markdown(results);
  console.log(text);
  if (!results.isSaved) return;
  const { subject } = results;
  await saveResult(`${subject}.md`, text.replace(/^# .*\n/, `$&\n![](${subject}.svg)\n`));
  await saveResult(`${subject}.svg`, chart(results.measures));
}

/** Writes a file of results/. */
export async function saveResult(name: string, text: string): Promise<void> {
  await writeFile(new URL(`results/${name}`, import.meta.url), `${text.trimEnd()}\n`);
}

/**
 * Replaces the sections of a file of results/ whose titles begin with the same words as the new ones, or adds them. The text
 * before the first section is the new one.
 */
export async function saveSections(name: string, introduction: string, sections: readonly string[]): Promise<void> {
  const titleOf = (section: string): string => /^## \w+/.exec(section)?.[0] ?? '';
  const before = await readFile(new URL(`results/${name}`, import.meta.url), 'utf8');
  const kept = new Map(
    before
      .split(/^(?=## )/m)
      .slice(1)
      .map((section) => [titleOf(section), section.trimEnd()]),
  );
  for (const section of sections) kept.set(titleOf(section), section.trimEnd());
  await saveResult(name, [introduction.trimEnd(), ...kept.values()].join('\n\n'));
}

function markdown({ subject, measures, growth, calls, facts }: Results): string {
  return [
    `# Measured with \`npm run bench -- ${subject}\``,
    '',
    "Wall time of whole processes, Node's own start included; median, fastest to slowest round. The contenders take turns,",
    'and a ratio is the median of the ratios within each round.',
    '',
    ...facts.map((fact) => `- ${fact}`),
    ...measures.flatMap((measure) => ['', `## ${measure.title}`, '', raceTable(measure)]),
    '',
    '## Aims',
    '',
    aims(measures),
    ...(growth.length > 0 ? ['', '## Growth', '', growthTable(growth)] : []),
    ...(calls.length > 0 ? ['', callsLine(calls)] : []),
  ].join('\n');
}

function raceTable({ race, unit, contenders }: Measure): string {
  const how = contenders && new Map(contenders.map((contender) => [contender.name, contender.how]));
  const rows = [...race.times]
    .sort(([, a], [, b]) => spread(a).median - spread(b).median)
    .map(([name, times]) => {
      const ratio = ratios(race, name, unit);
      return [
        name,
        msText(spread(times)),
        ratio ? ratioText(ratio) : '',
        String(times.length),
        ...(how ? [how.get(name) ?? ''] : []),
      ];
    });
  const failed = [...race.failures].map(([name, why]) => [
    name,
    'failed',
    '',
    '',
    ...(how ? [''] : []),
    why.split('\n')[0] ?? '',
  ]);
  const head = ['', 'ms', `times ${unit}`, 'rounds', ...(how ? ['how'] : [])];
  return [table(head, rows), ...failed.map(([name, , , , ...why]) => `\n${name} failed: ${why.join(' ').trim()}`)].join(
    '\n',
  );
}

function aims(measures: readonly Measure[]): string {
  const rows = measures.flatMap(({ title, race, aims: list = [] }) =>
    list.map(({ than, atMost }) => {
      const ratio = ratios(race, 'svc', than);
      return [
        title,
        atMost === 1 ? `faster than ${than}` : `at most ${atMost} times ${than}`,
        ratio ? ratioText(ratio) : 'not measured',
        ratio ? (ratio.median <= atMost ? 'reached' : 'MISSED') : '',
      ];
    }),
  );
  return table(['', 'aim', 'svc', ''], rows);
}

/** The cost of 1,000 more, between neighbouring sizes: equal when the cost grows linearly. */
function growthTable(growth: readonly Growth[]): string {
  const sizes = [...new Set(growth.flatMap(({ points }) => points.map(({ size }) => size)))];
  const steps = sizes.slice(1).map((size, index) => [sizes[index] ?? 0, size] as const);
  const rows = growth.map(({ job, points, failure }) => {
    const at = new Map(points.map(({ size, ms }) => [size, ms]));
    const slope = ([from, to]: readonly [number, number]): string => {
      const [a, b] = [at.get(from), at.get(to)];
      return a === undefined || b === undefined ? '' : (((b - a) / (to - from)) * 1000).toFixed(0);
    };
    return [
      job,
      ...sizes.map((size) => at.get(size)?.toFixed(0) ?? ''),
      ...steps.map(slope),
      failure?.split('\n')[0] ?? '',
    ];
  });
  const number = (count: number): string => count.toLocaleString('en');
  const head = [
    'ms',
    ...sizes.map(number),
    ...steps.map(([from, to]) => `per 1,000 more, ${number(from)} to ${number(to)}`),
    '',
  ];
  return table(head, rows);
}

function callsLine(calls: readonly number[] | string): string {
  if (typeof calls === 'string') return `Schema calls in one process failed: ${calls.split('\n')[0]}`;
  return `\`db.schema.create\` in one process, ms of each tenth of the calls: ${calls.map((ms) => ms.toFixed(0)).join(', ')}.`;
}

const msText = ({ median, min, max }: Spread): string =>
  `${median.toFixed(0)} (${min.toFixed(0)} to ${max.toFixed(0)})`;
const ratioText = ({ median, min, max }: Spread): string =>
  `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`;
