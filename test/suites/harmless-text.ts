import * as assert from 'node:assert/strict';
import { hasInvisible } from '../../core/display/misleading.ts';
import { UNSAFE_TEXTS } from './channel-fixtures.ts';
import type { ChannelMessage, ChannelUnderTest } from './channel-under-test.ts';

/** What models and people write into the texts of a message must reach a person as text. */

/** Text moved to the next line, like a parameter of its own; letters of another script; marks over the lines around. */
const MISLEADING_TEXTS = [`paid${' '.repeat(60)}\u02baamount\u02ba: 5,`, 'p\u0430ypal.com', `e${'\u0301'.repeat(30)}`];

/** Texts that mislead, and markup of the medium. */
export const hostileTexts = ({ markup }: Pick<ChannelUnderTest, 'markup'>): readonly string[] => [
  ...UNSAFE_TEXTS,
  ...MISLEADING_TEXTS,
  ...markup,
];

/** Fails if a person is misled, or if markup of the medium has an effect. `what` names the message. */
export function assertHarmless(
  { reader, markup, markupArea = String }: ChannelUnderTest,
  { raw, displayed }: ChannelMessage,
  what: string,
): void {
  if (reader === 'person') {
    assert.ok(!hasInvisible(displayed), `${what}: a person sees misleading characters`);
    for (const text of MISLEADING_TEXTS) {
      assert.ok(!displayed.includes(text), `${what}: a person is misled by ${JSON.stringify(text.slice(0, 20))}`);
    }
  }
  const area = markupArea(raw);
  for (const text of markup) {
    const at = area.indexOf(text);
    assert.ok(
      at < 0,
      `${what}: ${text} was sent unescaped, is markup of your own, or is what follows an escape that is a prefix (then choose markup with a special character inside): …${excerpt(area.slice(Math.max(0, at - 60)))}`,
    );
  }
}

/** Fails if the reader does not see the hostile texts: a program all of them, a person the markup, as text. */
export function assertShown({ reader, markup }: ChannelUnderTest, { displayed }: ChannelMessage, what: string): void {
  if (reader === 'program') {
    assert.deepEqual(missingTexts(hostileTexts({ markup }), displayed), [], `${what}: some texts were changed`);
    return;
  }
  for (const text of markup) {
    assert.ok(unfolded(displayed).includes(text), `${what}: the reader does not see the text ${text}`);
  }
}

/** The texts that no string of the JSON contains. */
export function missingTexts(texts: readonly string[], json: string): readonly string[] {
  const strings: string[] = [];
  JSON.parse(json, (_key, value) => {
    if (typeof value === 'string') strings.push(value);
    return value;
  });
  return texts.filter((text) => !strings.some((one) => one.includes(text)));
}

/** Without the breaks of `displayJson` in wide lines. */
export const unfolded = (text: string): string => text.replace(/\n\s*↪ /g, '');

export const excerpt = (text: string): string => (text.length > 160 ? `${text.slice(0, 160)} …` : text);
