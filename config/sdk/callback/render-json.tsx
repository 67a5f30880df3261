import type { Child } from 'hono/jsx';
import { DEFAULT_WIDTH } from '../../../core/display/fold.ts';
import { jsonLines, warningLines } from '../../../core/display/json.ts';
import { CONTINUATION } from '../../../core/display/misleading.ts';
import type { Json } from '../../../core/json.ts';

const STRING = /"([^"\\]*(?:\\.[^"\\]*)*)("?)/gs;
const BREAK = `\n${CONTINUATION} `;
const ASCII = /^[\n -~]*$/;

/**
 * JSON that is safe to show, of one line or more. Each string is by itself: its letters may be written from right to left, and
 * would otherwise move what is before and after them. The last string may be cut.
 */
export function renderJson(text: string): Child {
  if (ASCII.test(text)) return text;
  const parts: Child[] = [];
  let end = 0;
  for (const { 0: whole, 1: inner = '', 2: quote = '', index } of text.matchAll(STRING)) {
    parts.push(text.slice(end, index), '"', inner.split(BREAK).map(isolated), quote);
    end = index + whole.length;
  }
  return [...parts, text.slice(end)];
}

const isolated = (part: string, index: number): Child => [
  index > 0 && BREAK,
  ASCII.test(part) ? part : <bdi>{part}</bdi>,
];

/** Lines of JSON, and below them what is misleading in `named`: the value, by the names that the warnings use. */
export function renderJsonBlock(value: Json | object, named = value): Child {
  const warnings = warningLines(named);
  return (
    <>
      <pre>{renderJson(jsonLines(value, DEFAULT_WIDTH).join('\n'))}</pre>
      {warnings.length > 0 && <pre class="warnings">{warnings.join('\n')}</pre>}
    </>
  );
}
