import * as assert from 'node:assert/strict';
import { escapeJson } from '../core/display/escape-json.ts';
import { displayJson, jsonLines } from '../core/display/json.ts';
import { displayText, escapeInvisible, shortenText } from '../core/display/text.ts';
import { test } from './kit/test.ts';

/** What a model can lay out in what an approver reads. Hostile characters are written as escapes. */

const ORDINARY: Readonly<Record<string, readonly string[]>> = {
  Cyrillic: [
    'Привет, мир! Отправить 100 ₽ на счёт Иванова',
    'SMS-сообщение, IT-отдел, COVID-19 и ОС Windows 11',
    'Сергей О. Петров и А. С. Пушкин',
    'е́сли бы ё и й'.normalize('NFD'),
    'Київ, Їжак; Београд; Алматы',
  ],
  Greek: ['ελληνικά κείμενα', 'µm μs kΩ Δt α-helix π≈3, α = 0.05', 'ᾅδης'.normalize('NFD')],
  'Chinese, Japanese and Korean': [
    '東京都の田中さんへ、１０月5日に「お礼」をＡＢＣ株式会社から送る。コーヒーＱ＆Ａ',
    '中文：你好，“世界”！共3个',
    '한국어 문장 카카오톡 OK ㅇㅇ',
  ],
  'other scripts': [
    'שָׁלוֹם עֲלֵיכֶם צה״ל',
    'السَّلَامُ عَلَيْكُمْ PDF الملف ١٢٣',
    'می\u200cخواهم',
    'น้ำใจ ใช้LINEส่งที่นี่',
    'क्षत्रिय र्क्ष्य १२',
    'မြွှောင် ខ្មែរស្ត្រី',
    'Հայերեն լեզու, ქართული, ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ',
  ],
  accents: [
    'café naïve résumé'.normalize('NFD'),
    'Nguyễn Văn Ánh, Tiếng Việt'.normalize('NFD'),
    'Żółć, Ærøskøbing, Straße, İstanbul, ısı',
    'a ≠ b'.normalize('NFD'),
  ],
  emoji: ['👩‍👩‍👧 ❤️ 1️⃣ 🇩🇪 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ℹ️ 👍🏽 🏳️‍🌈'],
  typography: [
    '“Hello,” she said – it’s 5″ wide… 10–20 €',
    'x²+y³, ½, 1⁄2, 𝑥 ∈ ℝ',
    'L’été — «mot»',
    'C:\\new\\users',
    'e‑mail',
  ],
};
for (const [name, texts] of Object.entries(ORDINARY)) {
  test(`ordinary text is shown as it is: ${name}`, () => {
    for (const text of texts) {
      assert.equal(displayText(text), text);
      assert.equal(displayJson({ [text]: text }, { width: 300 }), JSON.stringify({ [text]: text }, null, 2));
      assert.equal(escapeJson(JSON.stringify(text)), JSON.stringify(text));
    }
  });
}

const MISLEADING: Readonly<Record<string, readonly (readonly [text: string, shown: string])[]>> = {
  'letters of another script': [
    ['p\u0430ypal.com', 'p\\u{430}ypal.com'],
    ['\u0430s\u0441ount', '\\u{430}s\\u{441}ount'],
    ['\u0440\u0430\u0443.com', '\\u{440}\\u{430}\\u{443}.com'],
    ['send it to \u0430\u0440\u04cf\u0435', 'send it to \\u{430}\\u{440}\\u{4cf}\\u{435}'],
    ['go\u03bfgle', 'go\\u{3bf}gle'],
    ['g\u03ccogle', 'g\\u{3cc}ogle'],
    ['\ua4d1\ua4ee\ua4ec', '\\u{a4d1}\\u{a4ee}\\u{a4ec}'],
    ['pay\u4e28', 'pay\\u{4e28}'],
    ['\u{10300}', '\\u{10300}'],
  ],
  'letters in another form': [
    ['\u{1d68a}\u{1d696}\u{1d698}', '\\u{1d68a}\\u{1d696}\\u{1d698}'],
    ['\uff41mount', '\\u{ff41}mount'],
    ['p\u0251ypal', 'p\\u{251}ypal'],
    ['c\u1d0fok', 'c\\u{1d0f}ok'],
    ['1\u06600', '1\\u{660}0'],
  ],
  'look-alike punctuation': [
    ['\u02baamount\u02ba: 5', '\\u{2ba}amount\\u{2ba}: 5'],
    ['\uff02amount\uff02', '\\u{ff02}amount\\u{ff02}'],
    ['\u201camount\u201d: 5', '\\u{201c}amount\\u{201d}: 5'],
    ['\u2033amount\u2033 : 5', '\\u{2033}amount\\u{2033} : 5'],
    ['paypal.com\u2215login', 'paypal.com\\u{2215}login'],
  ],
  'combining marks': [
    [`e${'\u0301'.repeat(300)}`, 'e\\u{301×300}'],
    ['1\u03360\u0336', '1\\u{336}0\\u{336}'],
    ['\u0301x', '\\u{301}x'],
    ['"\u0308', '"\\u{308}'],
    ['a\u0489', 'a\\u{489}'],
    ['a\u0300\u0323\u0330\u0331', 'a\\u{300}\\u{323}\\u{330}\\u{331}'],
    ['p\u0430\u0301y', 'p\\u{430}\\u{301}y'],
  ],
  'spaces and what cannot be seen': [
    [`a${' '.repeat(60)}b`, 'a\\u{20×60}b'],
    ['a  b', 'a\\u{20×2}b'],
    ['a\u00a0b\u3000c', 'a\\u{a0}b\\u{3000}c'],
    ['a\u200b\u200b\u200bb\u202e', 'a\\u{200b×3}b\\u{202e}'],
    ['tag\u{e0041}', 'tag\\u{e0041}'],
    ['a\u200db \ufe0f', 'a\\u{200d}b \\u{fe0f}'],
    ['a\u3164b\u{1d159}\u2800', 'a\\u{3164}b\\u{1d159}\\u{2800}'],
    ['\ud800', '\\u{d800}'],
  ],
};
for (const [name, texts] of Object.entries(MISLEADING)) {
  test(`what misleads is written out: ${name}`, () => {
    for (const [text, shown] of texts) {
      assert.equal(displayText(text), shown);
      const quoted = shown.replaceAll(/"/g, '\\"');
      assert.equal(jsonLines([text], 80)[1], `  "${quoted}"`);
      const json = JSON.stringify({ [text]: [text] });
      const escaped = escapeJson(json);
      assert.deepEqual(JSON.parse(escaped), JSON.parse(json));
      assert.doesNotMatch(escaped, /[^ -~]| {2}/);
    }
  });
}

test('text that looks like one of our marks is written out', () => {
  assert.equal(displayText('\\u{430}'), '\\u{5c}u{430}');
  assert.equal(displayJson('\\u{430}'), '"\\\\u{430}"');
  assert.equal(displayText('\u21aa x'), '\\u{21aa} x');
  assert.equal(displayText('\u21aa\ufe0f x'), '\\u{21aa}\\u{fe0f} x');
  assert.equal(displayText('a\nb'), 'a\\nb');
  assert.equal(displayText('  a\n\tb  c', { lines: true }), '  a\n\tb\\u{20×2}c');
});

test('JSON is whole, and only its own lines begin with two spaces', () => {
  const value = {
    note: `${'lamp '.repeat(30)}"amount": 5,`,
    marks: '\u202e.'.repeat(40),
    items: [{ wide: '東京'.repeat(30), deep: {}, none: [] }, 1e21, null],
    [`${'k'.repeat(200)}`]: 9999,
  };
  for (const width of [20, 40, 72]) {
    const text = jsonLines(value, width).join('\n');
    for (const line of text.split('\n')) {
      assert.match(line, /^(↪ | {2}|[{}])/);
      assert.doesNotMatch(line.replaceAll('\\u{202e}', '').replaceAll('\\"', ''), /\\/, 'an escape is split');
      const columns = [...line].length + (line.match(/[東京]/g)?.length ?? 0);
      assert.ok(columns <= width, `${columns} columns: ${line}`);
    }
    assert.deepEqual(JSON.parse(text.replaceAll('\n↪ ', '').replaceAll('u{202e}', 'u202e')), value);
  }
});

test('warnings name what misleads, and names that look alike', () => {
  const warnings = (value: object): string[] =>
    displayJson(value, { width: 200 })
      .split('\n')
      .filter((line) => line.startsWith('! '));
  assert.deepEqual(warnings({ account: 1, note: 'a  b', name: 'José', at: '10\u00a0h' }), []);
  assert.deepEqual(warnings({ account: 1, '\u0430\u0441count': 2 }), [
    '! the name has letters that look like others: \\u{430}\\u{441}count',
    '! the names "account" and "\\u{430}\\u{441}count" look alike',
  ]);
  assert.deepEqual(warnings({ to: { amount: 1, arnount: 2 } }), ['! to: the names "amount" and "arnount" look alike']);
  assert.deepEqual(warnings({ to: [{ site: 'pay at p\u0430ypal.com now' }] }), [
    '! to[0].site: letters that look like others: p\\u{430}ypal.com',
  ]);
  assert.deepEqual(warnings({ note: `x${' '.repeat(60)}\u02baamount\u02ba: 5,e${'\u0301'.repeat(300)}\u202e` }), [
    '! note: characters that look like punctuation: \\u{2ba}amount\\u{2ba}:',
    '! note: invisible characters: \\u{301×24}\\u{202e}',
    '! note: 300 combining marks beyond ordinary spelling',
    '! note: a run of 60 spaces',
  ]);
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`p${at}`, 'p\u0430y']));
  assert.equal(warnings(many).length, 9);
  assert.equal(warnings(many).at(-1), '! and 22 more');
  const long = Object.fromEntries(['a', 'b'].map((end) => [`${'p'.repeat(90)}${end}`, 'p\u0430y']));
  assert.equal(warnings(long).length, 1, warnings(long).join('\n'));
});

test('a message that quotes other text is on lines of its own, without what cannot be seen', () => {
  assert.equal(escapeInvisible('a\u001b[2J\u200b  b\n\tp\u0430y é'), 'a\\u{1b}[2J\\u{200b}  b\n\tp\u0430y é');
});

test('a shortened text has at most the given length, and names its own', () => {
  assert.deepEqual(shortenText('p\u0430ypal', 20), { text: 'p\\u{430}ypal', complete: true });
  const { text, complete } = shortenText('x'.repeat(100), 40);
  assert.deepEqual([complete, text.length, text.slice(-21)], [false, 40, 'x … (100 characters)'.padStart(21, 'x')]);
});

test('the limit of parameters is shown in seconds, whatever they are', () => {
  const hostile = [
    '\u0301',
    '\u0430',
    ' ',
    'p\u0430y ',
    '\u0430\u0301\u0431 ',
    '\u{1d68a}',
    '“',
    'x',
    '\u200b',
    '👩‍👩‍👧',
  ];
  for (const text of hostile) {
    const repeated = text.repeat(Math.floor((256 * 1024) / Buffer.byteLength(text)));
    assert.ok(displayJson({ repeated }).length > 0);
    assert.ok(escapeJson(JSON.stringify({ repeated })).length > 0);
  }
});
