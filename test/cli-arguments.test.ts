import * as assert from 'node:assert/strict';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { test } from './kit/test.ts';

// Arguments that a person or a script gets wrong: each is refused before anything is read or written.

interface Refusal {
  readonly message: string;
  readonly why: string | null;
  readonly nextActions: readonly string[];
}

const shop = project(
  { main: 'pglite://./data' },
  { databases: { main: { dialect: 'postgresql', url: { dev: 'pglite://./data', staging: 'pglite://./other' } } } },
);

async function refused(words: readonly string[], code = 'usage'): Promise<Refusal> {
  const end = words.includes('--') ? words.indexOf('--') : words.length;
  const error = json(assertExit(await shop.svc(...words.slice(0, end), '--json', ...words.slice(end)), 2));
  assert.equal(error.code, code, JSON.stringify(error));
  assert.deepEqual(shop.files(), []);
  return error as unknown as Refusal;
}

test(
  'an option that takes one value is refused if it is given twice',
  async () => {
    for (const [words, name, values] of [
      [['db', 'migrate', '--db', 'main', '--db', 'other'], '--db', '"main" and "other"'],
      [['db', 'migrate', '--env=dev', '--env', 'staging'], '--env', '"dev" and "staging"'],
      [['db', 'migrate', 'rollback', '-n', '1', '--count=2'], '--count', '"1" and "2"'],
      // A repeatable option of the same command has that value too.
      [
        ['people', 'token', 'create', 'ann', '--group', '9d', '--expires', '9d', '--expires', '9d'],
        '--expires',
        '"9d" and "9d"',
      ],
    ] as const) {
      const { message, why } = await refused(words);
      assert.equal(message, `The option ${name} is given 2 times.`);
      assert.equal(why, `Its values are ${values}.`);
    }
    // Not one that may be repeated, with the same value or another.
    const ignoring = ['--ignore', 'a', '--ignore', 'a', '--ignore', 'b'];
    assertExit(await shop.svc('db', 'schema', 'diff', '--from', 'main', '--to', 'empty', ...ignoring));
  },
  LONG,
);

test('an empty name of an environment, a database or a migration is refused', async () => {
  for (const words of [['--env', ''], ['--env='], ['--db', ''], ['--config', '']]) {
    const [name = ''] = String(words[0]).split('=');
    const { message } = await refused(['db', 'migrate', ...words]);
    assert.equal(message, `The option ${name} needs a value, and its value is empty.`);
  }
  for (const name of ['', ' ', '№']) {
    const { message, nextActions } = await refused(['db', 'migrate', 'create', name]);
    assert.equal(message, `A migration cannot have the name "${name}".`);
    assert.deepEqual(nextActions, ['svc db migrate create <name>']);
  }
});

test('what a command does not accept is named', async () => {
  assert.equal((await refused(['db', 'migrate', '--', 'x'])).message, '"svc db migrate" does not accept "x".');
  const negative = await refused(['db', 'migrate', 'rollback', '-n', '-1']);
  assert.equal(negative.message, 'The option -n does not accept "-1".');
});

test('an environment of a source that has no URL: the advice is to write another source', async () => {
  const { nextActions } = await refused(['db', 'schema', 'diff', '--from', 'main@x', '--to', 'empty'], 'env_unknown');
  assert.deepEqual(nextActions, ['Write main@dev.', 'Write main@staging.']);
});
