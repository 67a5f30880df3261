import { table } from '../table.ts';
import type { Contender } from './compare.ts';

const ms = ({ p50, p99 }: { readonly p50: number; readonly p99: number }) => `${p50.toFixed(1)} / ${p99.toFixed(1)}`;
const rounded = (number: number) => Math.round(number).toLocaleString('en-US');

export function figuresTable(contenders: readonly Contender[]): string {
  const rows = contenders.map(({ name, figures: { start, wake, rate, bytes, memory, list } }) => [
    name,
    ms(start),
    ms(wake),
    rounded(rate),
    rounded(bytes),
    (memory / 2 ** 20).toFixed(1),
    list.listed === undefined ? 'cannot' : `${rounded(list.ms)} (${rounded(list.listed)} of ${rounded(list.waiting)})`,
  ]);
  const head = [
    '',
    'start to stored, p50/p99 ms',
    'decision to handler, p50/p99 ms',
    'create, decide, finish, per second',
    'bytes per waiting run',
    'memory of 1,000 waiting runs, MB',
    'list waiting runs, ms',
  ];
  return table(head, rows);
}

/** A run whose parts take longer, such as one that starts processes, does not show a cost of two milliseconds. */
const MEASURABLE_MS = 500;

/** What a gated call costs with the framework's own approval, and with the adapter of svc. */
export function adapterTable(contenders: readonly Contender[]): string {
  const costs = new Map(contenders.map(({ name, figures: { start, wake } }) => [name, start.p50 + wake.p50]));
  const rows = [...costs].flatMap(([name, own]) => {
    const adapted = costs.get(`${name}-svc`);
    if (adapted === undefined) return [];
    const added = adapted - own;
    const verdict = own > MEASURABLE_MS ? 'not to be seen in it' : added < 2 ? 'reached' : 'MISSED';
    return [[name, own.toFixed(1), adapted.toFixed(1), own > MEASURABLE_MS ? '' : added.toFixed(1), verdict]];
  });
  return table(['', 'its own, ms', 'with svc, ms', 'added, ms', 'goal: less than 2 ms'], rows);
}

/** One table per fault, because the responses are long. */
export function faultTables(contenders: readonly Contender[]): readonly string[] {
  const faults = Object.keys(contenders[0]?.faults ?? {});
  return faults.map((fault) => {
    const rows = contenders.map(({ name, faults: results }) => [
      name,
      results[fault]?.ran ?? '',
      (results[fault]?.response ?? '').replaceAll('|', '\\|'),
    ]);
    return `### ${fault}\n\n${table(['', 'effect', 'response'], rows)}`;
  });
}
