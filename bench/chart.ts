import type { Measure } from './measures.ts';
import { spread } from './race.ts';

const WIDTH = 760;
const LEFT = 170;
const RIGHT = 130;
const BAR = 16;
const ROW_HEIGHT = 24;
const HEAD = 44;

/** Bars for each measure, the fastest first, with a line from the fastest to the slowest round. */
export function chart(measures: readonly Measure[]): string {
  const parts: string[] = [];
  let y = 16;
  for (const { title, race, unit } of measures) {
    const bars = [...race.times]
      .map(([name, times]) => ({ name, ...spread(times) }))
      .sort((a, b) => a.median - b.median);
    if (bars.length === 0) continue;
    const longest = Math.max(...bars.map(({ max }) => max));
    const base = bars.find(({ name }) => name === unit)?.median;
    const x = (ms: number): number => LEFT + (ms / longest) * (WIDTH - LEFT - RIGHT);
    parts.push(text(16, y + 18, title, 'font-weight="bold" font-size="15"'));
    y += HEAD - 12;
    for (const { name, median, min, max } of bars) {
      const middle = y + BAR / 2;
      const times = base === undefined || name === unit ? '' : `  ×${(median / base).toFixed(2)}`;
      parts.push(
        text(LEFT - 8, middle + 4, name, `text-anchor="end"${name === 'svc' ? ' font-weight="bold"' : ''}`),
        `<rect x="${LEFT}" y="${y}" width="${fixed(x(median) - LEFT)}" height="${BAR}" rx="2" fill="${colour(name, unit)}"/>`,
        `<path d="M${fixed(x(min))} ${middle}H${fixed(x(max))}" stroke="#222" stroke-width="1.5"/>`,
        text(x(max) + 6, middle + 4, `${median.toFixed(0)} ms${times}`, ''),
      );
      y += ROW_HEIGHT;
    }
    y += 12;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${y}" viewBox="0 0 ${WIDTH} ${y}" font-family="system-ui, sans-serif" font-size="12" fill="#222">`,
    '<title>Times of whole processes, svc and its peers</title>',
    `<rect width="${WIDTH}" height="${y}" fill="#fff"/>`,
    ...parts,
    '</svg>\n',
  ].join('\n');
}

const fixed = (value: number): string => value.toFixed(1);
const colour = (name: string, unit: string): string =>
  name === 'svc' ? '#1f6feb' : name === unit ? '#8c959f' : '#c9d1d9';

function text(x: number, y: number, content: string, attributes: string): string {
  const safe = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${fixed(x)}" y="${fixed(y)}" ${attributes}>${safe}</text>`;
}
