import type { FieldType } from './types.ts';

/**
 * A uuid in small letters, and a wall-clock time with seconds and milliseconds, whatever was left out: where an engine
 * keeps them as texts, what is equal is then spelled equally, and sorts.
 */
export function normalText(text: string, type: FieldType): string {
  if (type === 'uuid') return text.toLowerCase();
  if (type !== 'time' && type !== 'datetime') return text;
  const [, date = '', hours = '', seconds = ':00', fraction = ''] =
    /^(?:(\d{4}-\d\d-\d\d)[ T])?(\d\d:\d\d)(:\d\d)?(?:\.(\d{1,3}))?$/.exec(text) ?? [];
  if (hours === '') return text;
  const time = `${hours}${seconds}.${fraction.padEnd(3, '0')}`;
  return date === '' ? time : `${date}T${time}`;
}

/** What others may have written for such a text, the longest first. Of times, a shorter spelling is never the greater one. */
export function spellings(text: string, type: FieldType): readonly [string, ...string[]] {
  const normal = normalText(text, type);
  if (type === 'uuid') return [normal, normal.toUpperCase()];
  if (type !== 'time') return [normal];
  const shorter = [/0$/, /00$/, /\.000$/, /:00\.000$/].flatMap((end) =>
    end.test(normal) ? [normal.replace(end, '')] : [],
  );
  return [normal, ...shorter];
}
