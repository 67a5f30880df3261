import { SvcError } from '../core/errors.ts';
import { generateTag } from '../core/migration/tag.ts';

/**
 * A tag of this moment that comes after every file there is: files run in the order of their tags, and clocks of two
 * machines disagree.
 */
export function nextTag(name: string, at: Date, newest: string | undefined): string {
  if (newest === undefined) return generateTag(name, at);
  const time = Math.max(at.getTime(), timeOf(newest) ?? 0);
  for (const offset of [0, 1000]) {
    const tag = generateTag(name, new Date(time + offset));
    if (tag > newest) return tag;
  }
  throw new SvcError('tag_invalid', `The migration "${newest}" comes after every tag that could be generated.`, {
    why: 'Files run in the order of their tags, and a generated tag begins with a date.',
    state: 'Nothing was written.',
    next: ['Rename that file, and the tag in it, to <YYYYMMDD>_<HHMMSS>_<name>.'],
  });
}

function timeOf(tag: string): number | undefined {
  const found = /^(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)_/.exec(tag)?.slice(1).map(Number);
  if (!found) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found;
  const time = Date.UTC(year, month - 1, day, hour, minute, second);
  return time < Date.UTC(9999, 11, 31) ? time : undefined;
}
