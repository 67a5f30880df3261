import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Part of `npm run lint`: finds identities that differ between two copies of this code. The command line is one copy; a
 * plugin that imports `@svc/sdk` loads another into the same process, and values pass between them. A comment
 * `per copy: <reason>` on the line before allows what may differ.
 */

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const files = execFileSync(
  'git',
  [
    'ls-files',
    '--cached',
    '--others',
    '--exclude-standard',
    'core',
    'plugins',
    'config',
    'cli',
    'examples',
    'test/suites',
  ],
  { cwd: root, encoding: 'utf8' },
)
  .split('\n')
  .filter((file) => file.endsWith('.ts') && !/\/test\/|^test\/suites\/wrong\//.test(file));

/** Lines of a module's own scope are not indented. */
const RULES: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bSymbol\(/, 'Symbol.for(): a plain symbol is another one in each copy'],
  [/\binstanceof (?!super\b)([\w$]+)/, 'an isX() function: a class is another one in each copy'],
  [
    /^(?:export )?const \w+(?:: [^=]+)? = new (?:Map|Set|WeakMap|WeakSet|AsyncLocalStorage)(?:<.*>)?\(\)/,
    'processWide() of core/process-wide.ts: module state is not shared by the copies',
  ],
  [/^(?:export )?let /, 'processWide() of core/process-wide.ts: module state is not shared by the copies'],
];

let found = 0;
for (const file of files) {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  for (const [index, line] of lines.entries()) {
    if (/^\s*(\*|\/)/.test(line) || /per copy: \w/.test(lines[index - 1] ?? '')) continue;
    for (const [pattern, instead] of RULES) {
      const match = pattern.exec(line);
      // The classes of the language and of Node exist once in a process.
      if (!match || (match[1] !== undefined && match[1] in globalThis)) continue;
      found += 1;
      console.error(`${file}:${index + 1} ${instead}\n    ${line.trim()}`);
    }
  }
}
console.log(
  found === 0 ? `${files.length} files, no identity of a single copy.` : `${found} identities of a single copy.`,
);
if (found > 0) process.exitCode = 1;
