import { CONTINUATION } from '../../../core/display/misleading.ts';
import { type Content, type Html, html } from './html.ts';

const STRING = /"([^"\\]*(?:\\.[^"\\]*)*)("?)/gs;
const BREAK = `\n${CONTINUATION} `;
const ASCII = /^[\n -~]*$/;

/**
 * JSON that is safe to show, of one line or more. Each string is by itself: its letters may be written from right to left, and
 * would otherwise move what is before and after them. The last string may be cut.
 */
export function renderJson(text: string): Html {
  if (ASCII.test(text)) return html`${text}`;
  const parts: Content[] = [];
  let end = 0;
  for (const { 0: whole, 1: inner = '', 2: quote = '', index } of text.matchAll(STRING)) {
    parts.push(text.slice(end, index), '"', inner.split(BREAK).map(isolated), quote);
    end = index + whole.length;
  }
  return html`${[...parts, text.slice(end)]}`;
}

const isolated = (part: string, index: number): Content => [
  index > 0 && BREAK,
  ASCII.test(part) ? part : html`<bdi>${part}</bdi>`,
];
