import { reportLines } from './report-lines.ts';

/**
 * Part of `npm run lint`: finds identities that differ between two copies of this code. The command line is one copy; a
 * plugin that imports `@svc/sdk` loads another into the same process, and values pass between them. A comment
 * `per copy: <reason>` on the line before allows what may differ.
 */

/** Lines of a module's own scope are not indented. */
const RULES: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bSymbol\(/, 'Symbol.for(): a plain symbol is another one in each copy'],
  [/\binstanceof ([\w$]+)/, 'an isX() function: a class is another one in each copy'],
  [
    /^(?:export )?const \w+(?:: [^=]+)? = new (?:Map|Set|WeakMap|WeakSet|AsyncLocalStorage)(?:<.*>)?\(\)/,
    'processWide() of core/process-wide.ts: module state is not shared by the copies',
  ],
  [/^(?:export )?let /, 'processWide() of core/process-wide.ts: module state is not shared by the copies'],
];

reportLines({
  paths: ['core', 'plugins', 'config', 'cli', 'examples', 'test/suites'],
  includes: (file) => /\.tsx?$/.test(file) && !/\/test\/|^test\/suites\/wrong\//.test(file),
  *problems(line, previous) {
    if (/^\s*(\*|\/)/.test(line) || /per copy: \w/.test(previous)) return;
    for (const [pattern, instead] of RULES) {
      const match = pattern.exec(line);
      // The classes of the language and of Node exist once in a process.
      if (match && !(match[1] !== undefined && match[1] in globalThis)) yield instead;
    }
  },
  found: 'identities of a single copy',
  none: 'no identity of a single copy',
});
