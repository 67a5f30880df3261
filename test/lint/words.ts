import { reportLines } from './report-lines.ts';

/**
 * Part of `npm run lint`: finds words that readers of this project should not have to guess at, in code, comments,
 * messages and docs. Names are split where their case changes, so that a phrase is found in `wayBack` too.
 */

const FILES = /\.(tsx?|mts|mjs|js|md|yaml|json)$/;
const SKIPPED = /(^|\/)(package-lock\.json|words\.ts)$|^bench\/results\//;

/** What must not occur, and what to write. Each is matched as whole words, without regard to case. */
const WORDS: readonly (readonly [words: string, instead: string])[] = [
  ['mend(s|ed|ing)?', 'fix'],
  ['tells?|told|untold', 'describe, report, list, notify'],
  ['stands?|stood', 'is, exists, is written'],
  ['(go|goes|went|gone|going) on', 'continue, happen'],
  ['whoever|whomever', 'the process that, the person who'],
  ['thereby', 'by that, so'],
  ['anew', 'again'],
  ['ways? back', 'rollback, down'],
  ['is none|are none', 'anything else'],
  ['of ours|of theirs', 'our, their'],
  ['what is no', 'anything that is not'],
  ['beside', 'next to, in addition to, with'],
  ['behind(?! (a|an|the|your) (\\w+ )?(proxy|login|gateway|balancer|pooler|firewall))', 'after, at the end of'],
  ['for ever', 'forever'],
  ['meanwhile', 'in the meantime, during'],
  ['he|him|his|himself', 'they'],
  ['holds? (it |them |nothing |anything )?up', 'block'],
  ['spec \\d+|rule \\d+\\.\\d+', 'the page of docs/, the manual or the standard that says it'],
  ['desk|ledger|outset|misfit|foreseen?|unfit|retold|retelling|underway', 'the word of the field'],
];
const patterns = WORDS.map(([words, instead]) => ({ pattern: new RegExp(`\\b(?:${words})\\b`, 'i'), instead }));

reportLines({
  includes: (file) => FILES.test(file) && !SKIPPED.test(file),
  *problems(line) {
    const text = line.replace(/([a-z])(?=[A-Z])/g, '$1 ').replaceAll('_', ' ');
    for (const { pattern, instead } of patterns) {
      const word = pattern.exec(text)?.[0];
      if (word !== undefined) yield `"${word}": ${instead}`;
    }
  },
  found: 'words of the list in test/lint/words.ts',
  none: 'no word of the list',
});
