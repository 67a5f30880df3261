import * as assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Cli } from 'clipanion';
import { table } from '../cli/command-list.ts';
import { test } from './kit/test.ts';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const SOURCES = ['core', 'config', 'cli', 'plugins', 'docs', 'README.md'];

/** A command in a message or on a page, up to the end of its words. */
const COMMAND = /(?<![\w/@.-])svc ((?:init|link|db|doctor|plugins|approvals|people)\b[^\n'`"|)]*)/g;
/** What follows a command on its line: an explanation, or the next sentence. */
const END = /\s{2,}|[;,:](?:\s|$)|\.(?:\s|$)|\s(?:then|and|or|for|to|in|writes|finds|reports|only|in a)\s.*$|\s\\$|\s#/;

interface Advice {
  readonly file: string;
  readonly words: readonly string[];
}

function advices(): Advice[] {
  const files = SOURCES.flatMap((name) =>
    name.endsWith('.md')
      ? [name]
      : readdirSync(join(root, name), { recursive: true, encoding: 'utf8' })
          .filter((file) => /\.(ts|md)$/.test(file) && !file.startsWith('typedoc') && !file.includes('generated'))
          .map((file) => join(name, file)),
  );
  return files.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(COMMAND)].map(([, text = '']) => ({
      file,
      words: (text.replaceAll(/\$\{[^}]*\}?/g, '<value>').split(END)[0] ?? '').trim().split(/\s+/),
    })),
  );
}

/** The path of the longest command that the words begin with. */
const pathOf = (words: readonly string[]): string | undefined =>
  table
    .map(({ path }) => path)
    .filter((path) => `${words.join(' ')} `.startsWith(`${path} `))
    .sort((a, b) => b.length - a.length)[0];

test('every command that a message or a page names exists, with its options', async () => {
  const options = new Map<string, ReadonlySet<string>>();
  for (const { path, load } of table) {
    const cli = new Cli();
    cli.register((await load()).default);
    const known = cli.definitions().flatMap((one) => one.options.map(({ definition }) => definition));
    options.set(path, new Set([...known.flatMap((text) => text.match(/-{1,2}[a-z][\w-]*/g) ?? []), '--help']));
  }
  const found = advices();
  assert.ok(found.length > 150, `only ${found.length} commands found`);
  const wrong = found.flatMap(({ file, words }) => {
    const path = pathOf(words);
    // The rest is a value that the message inserts, or words that a mistyped command is compared with.
    if (words.at(-1) === '<value>' && words.length === 2) return [];
    if (file === 'cli/similar-commands.ts') return [];
    if (path === undefined) return [`${file}: svc ${words.join(' ')}`];
    const unknown = words
      .filter((word) => /^-{1,2}[a-z]/.test(word))
      .map((word) => word.replace(/[.:=].*$|[^\w-]+$/g, ''))
      .filter((word) => !options.get(path)?.has(word));
    return unknown.length > 0 ? [`${file}: svc ${words.join(' ')}: ${unknown.join(', ')}`] : [];
  });
  assert.deepEqual(wrong, []);
});
