import { table } from '../table.ts';
import type { Contender } from './compare.ts';

const ms = ({ p50, p99 }: { readonly p50: number; readonly p99: number }) => `${p50.toFixed(1)} / ${p99.toFixed(1)}`;
const counted = (number: number) => Math.round(number).toLocaleString('en-US');

export function figuresTable(contenders: readonly Contender[]): string {
  const rows = contenders.map(({ name, figures: { start, wake, rate, bytes, memory, list } }) => [
    name,
    ms(start),
    ms(wake),
    counted(rate),
    counted(bytes),
    (memory / 2 ** 20).toFixed(1),
    `${counted(list.ms)} (${counted(list.listed)} of ${counted(list.waiting)})`,
  ]);
  const head = [
    '',
    'start to stored, p50/p99 ms',
    'decision to handler, p50/p99 ms',
    'create, decide, finish, per second',
    'bytes a waiting run',
    'memory of 1,000 waiting, MB',
    'list what waits, ms',
  ];
  return table(head, rows);
}

/** One table for each fault: what was told is a sentence. */
export function faultTables(contenders: readonly Contender[]): readonly string[] {
  const faults = Object.keys(contenders[0]?.faults ?? {});
  return faults.map((fault) => {
    const rows = contenders.map(({ name, faults: found }) => [
      name,
      found[fault]?.ran ?? '',
      (found[fault]?.told ?? '').replaceAll('|', '\\|'),
    ]);
    return `### ${fault}\n\n${table(['', 'what happened', 'what was told'], rows)}`;
  });
}
