import { lazy } from './lazy.ts';

/**
 * Letters that a reader takes for others, after Unicode TS 39 (confusables and mixed scripts), with what JavaScript knows
 * of scripts. Text in one script is ordinary, and so is Latin in Chinese, Japanese, Korean, Thai or Arabic.
 */

/** By what they look like. Latin letters in it are those that ordinary spelling does not mix with ASCII. */
const LOOK_ALIKES: Readonly<Record<string, string>> = {
  a: 'аαɑᴀ',
  b: 'ЬƅᏏꮟ',
  c: 'сϲᴄⲥⅽꮯ',
  d: 'ԁɗⅾꓒ',
  e: 'еҽεℯꬲ',
  f: 'ϝքꬵ',
  g: 'ɡցᶃ',
  h: 'һհᏂꮒ',
  i: 'іιɩɪⅰꭵӏ',
  j: 'јϳյ',
  k: 'κᴋⲕ',
  l: 'ӏІІΙⅼǀןוᛁ丨ㅣᅵ',
  m: 'ⅿᴍ',
  n: 'ոռ',
  o: 'оοσօᴏⲟסଠഠဝ௦౦೦൦๐໐০०੦૦ㅇ〇ჿ',
  p: 'рρⲣᴘ',
  q: 'ԛզգ',
  r: 'ᴦⲅꭇꭈꮁ',
  s: 'ѕꜱƽꮪ',
  t: 'ᴛ',
  u: 'սυᴜ',
  v: 'ѵνᴠⅴꮩט',
  w: 'ԝѡաᴡꮃ',
  x: 'хχⅹ᙮',
  y: 'уүγʏყỿ',
  z: 'ᴢꮓ',
  A: 'АΑᎪꓮⲀᗅ',
  B: 'ВΒᏴꓐⲂᗷ',
  C: 'СϹᏟꓚⲤⅭ',
  D: 'ᎠꓓⅮᗞ',
  E: 'ЕΕᎬꓰⲈⴹ',
  F: 'ϜꓝᖴϜ',
  G: 'ԌᏀᏳꓖ',
  H: 'НΗᎻꓧⲎ',
  I: 'ІΙⲒⅠꓲӀⵏ',
  J: 'ЈͿᎫꓙ',
  K: 'КΚᏦꓗⲔ',
  L: 'ᏞꓡⅬլᒪ',
  M: 'МΜᎷꓟⲘⅯϺ',
  N: 'ΝꓠⲚ',
  O: 'ОΟՕꓳⲞⵔ',
  P: 'РΡᏢꓑⲢᑭ',
  Q: 'Ԛⵕ',
  R: 'ᎡᏒꓣᖇ',
  S: 'ЅՏᏚꓢᏕ',
  T: 'ТΤᎢꓔⲦ',
  U: 'ՍꓴᑌԱ',
  V: 'ѴᏙꓦⅤᐯ',
  W: 'ԜᎳꓪ',
  X: 'ХΧꓫⲬⅩⵝ',
  Y: 'УΥҮᎩꓬⲨ',
  Z: 'ΖᏃꓜ',
  '3': 'ЗӠꝪⳌ',
  '6': 'Ᏼ',
  '8': '৪੪ଃ',
  '9': '৭੧୨൭',
};

const looksLike = lazy(
  (): ReadonlyMap<string, string> =>
    new Map(
      Object.entries(LOOK_ALIKES).flatMap(([like, letters]) => [...letters].map((letter) => [letter, like] as const)),
    ),
);

/** With or without an accent. */
const isLookAlike = (letter: string): boolean =>
  looksLike().has(letter) || looksLike().has(String.fromCodePoint(letter.normalize('NFD').codePointAt(0) ?? 0));

/** Scripts whose letters look like Latin ones, and whose words ordinary text does not mix with Latin. */
const latinLike = lazy((): readonly (readonly [name: string, letter: RegExp])[] =>
  (['Cyrillic', 'Greek', 'Armenian', 'Cherokee', 'Lisu', 'Coptic'] as const).map(
    (name) => [name, new RegExp(`\\p{Script=${name}}`, 'u')] as const,
  ),
);

/** Scripts that nobody writes today, with many letters like Latin ones. */
const historical = lazy(
  () =>
    new RegExp(
      `[${[
        ...[
          'Carian',
          'Caucasian_Albanian',
          'Deseret',
          'Duployan',
          'Elbasan',
          'Glagolitic',
          'Gothic',
          'Linear_A',
          'Linear_B',
        ],
        ...[
          'Lycian',
          'Lydian',
          'Medefaidrin',
          'Ogham',
          'Old_Hungarian',
          'Old_Italic',
          'Old_Permic',
          'Phoenician',
          'Runic',
        ],
        ...['Shavian', 'Ugaritic', 'Warang_Citi'],
      ]
        .map((name) => `\\p{Script=${name}}`)
        .join('')}]`,
      'gu',
    ),
);

const wordPattern = lazy(() => /[\p{L}\p{Nl}\p{M}\p{Nd}]+/gu);
const ALL_ASCII = /^[ -~]*$/;
const TOKEN = /\S+/gu;
const latinPattern = lazy(() => /\p{Script=Latin}/u);
const ASCII = /[a-z]/iu;
/** Letters of ASCII in another form: of mathematics, of symbols, of full width. */
const styledPattern = lazy(
  () => /[\u{1d400}-\u{1d7ff}\u2102\u210a-\u2112\u2115\u2119-\u211d\u2124\u212a\u212c\u212d\u212f-\u2131\u2133\u2134]/u,
);
const FULL_WIDTH = /[\uff21-\uff3a\uff41-\uff5a]/u;
const DIGITS = /\p{Nd}{2,}/gu;

/** The indices of letters and digits that look like others. */
export function* lookAlikes(text: string): Generator<number> {
  for (const { index } of text.matchAll(historical())) yield index;
  for (const { 0: word, index } of text.matchAll(wordPattern())) {
    if (ALL_ASCII.test(word)) continue;
    const isMisleading = lookAlikesOf(word);
    if (isMisleading) yield* indicesOf(word, index, isMisleading);
  }
  for (const { 0: number, index } of text.matchAll(DIGITS)) {
    if (/[0-9]/.test(number)) yield* indicesOf(number, index, (digit) => !/[0-9]/.test(digit));
  }
  for (const [name, letter] of latinLike()) {
    if (letter.test(text)) yield* wholeWords(text, name, letter);
  }
}

/** Which letters of a word look like others in it; undefined if none does. */
function lookAlikesOf(word: string): ((letter: string) => boolean) | undefined {
  const letters = [...word];
  if (letters.length < 2) return undefined;
  const scripts = latinLike().filter(([, letter]) => letter.test(word));
  const isForeign = (letter: string) => scripts.some(([, script]) => script.test(letter));
  const hasLatin = latinPattern().test(word);
  if (scripts.length > (hasLatin ? 0 : 1)) {
    // Symbols of science, as in μm and kΩ, are Greek letters that look like no others.
    const isScience =
      scripts.every(([name]) => name === 'Greek') && !letters.some((one) => isForeign(one) && isLookAlike(one));
    if (!isScience) return isForeign;
  }
  const hasASCII = ASCII.test(word);
  return (letter) =>
    styledPattern().test(letter) ||
    (hasASCII && FULL_WIDTH.test(letter)) ||
    ((hasASCII || latinPattern().test(letter)) && isLookAlike(letter) && !isForeign(letter));
}

/**
 * Words that consist of look-alikes, where nothing shows their script: in a text without other letters of
 * it, or joined to Latin ones as in a host name.
 */
function* wholeWords(text: string, name: string, script: RegExp): Generator<number> {
  const isPlain = [...text].some((letter) => script.test(letter) && !isLookAlike(letter));
  for (const { 0: token, index: start } of text.matchAll(TOKEN)) {
    if (isPlain && !latinPattern().test(token)) continue;
    for (const { 0: word, index } of token.matchAll(wordPattern())) {
      const letters = [...word].filter((letter) => script.test(letter));
      // A single Greek letter is a symbol.
      if (letters.length < (name === 'Greek' ? 2 : 1) || !letters.every(isLookAlike)) continue;
      yield* indicesOf(word, start + index, (letter) => script.test(letter));
    }
  }
}

function* indicesOf(text: string, offset: number, includes: (letter: string) => boolean): Generator<number> {
  let at = offset;
  for (const letter of text) {
    if (includes(letter)) yield at;
    at += letter.length;
  }
}

/** Two texts with the same skeleton look alike. */
export function skeleton(text: string): string {
  return [...text.normalize('NFKD').replace(/[\p{M}\p{Default_Ignorable_Code_Point}\p{Cc}]/gu, '')]
    .map((letter) => looksLike().get(letter) ?? letter)
    .join('')
    .replace(/\s+/gu, ' ')
    .replaceAll('rn', 'm')
    .replaceAll('vv', 'w')
    .replace(/[1I|]/g, 'l')
    .replaceAll('0', 'O');
}
