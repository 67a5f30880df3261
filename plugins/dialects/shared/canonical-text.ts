import type { FieldType } from '../../../core/schema/model.ts';

/**
 * For engines that store UUIDs and times as strings: a UUID in lower case, a time with seconds and milliseconds. Equal
 * values are then equal strings, and strings sort like values.
 */
export function canonicalText(text: string, type: FieldType): string {
  if (type === 'uuid') return text.toLowerCase();
  if (type !== 'time' && type !== 'datetime') return text;
  const [, date = '', hours = '', seconds = ':00', fraction = ''] =
    /^(?:(\d{4}-\d\d-\d\d)[ T])?(\d\d:\d\d)(:\d\d)?(?:\.(\d{1,3}))?$/.exec(text) ?? [];
  if (hours === '') return text;
  const time = `${hours}${seconds}.${fraction.padEnd(3, '0')}`;
  return date === '' ? time : `${date}T${time}`;
}

/** All spellings other programs may write, longest first. A shorter spelling of a time never sorts after a longer one. */
export function textVariants(text: string, type: FieldType): readonly [string, ...string[]] {
  const normal = canonicalText(text, type);
  if (type === 'uuid') return [normal, normal.toUpperCase()];
  if (type !== 'time') return [normal];
  const shorter = [/0$/, /00$/, /\.000$/, /:00\.000$/].flatMap((end) =>
    end.test(normal) ? [normal.replace(end, '')] : [],
  );
  return [normal, ...shorter];
}
