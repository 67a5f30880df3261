/** The text as a part of a regular expression that matches it. */
export const escapeRegExp = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** Like `containsWord`, for a text in lower case. Much faster where most names are not in it. */
export const lowerCaseContainsWord = (text: string, name: string): boolean =>
  text.includes(name.toLowerCase()) && containsWord(text, name);

/** Whether a name is in the text as a word of its own, in any case. */
export function containsWord(text: string, name: string): boolean {
  return new RegExp(`(?<![\\w$])${escapeRegExp(name)}(?![\\w$])`, 'i').test(text);
}
