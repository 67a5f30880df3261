import * as assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import type { SvcCommand } from '../cli/base.ts';
import { batchProgress } from '../cli/db/progress.ts';
import { ERASE_LINE, StatusLine } from '../cli/output.ts';
import { freshMongo, missing } from './kit/mongodb.ts';
import { LONG, project } from './kit/project.ts';
import { terminal } from './kit/terminal.ts';
import { test } from './kit/test.ts';

/** The progress output for a sequence of times, in a terminal or not. */
function progressOutput(
  isTerminal: boolean,
  moments: readonly (readonly [at: number, ...Parameters<ReturnType<typeof batchProgress>>])[],
) {
  const stderr = new PassThrough().setEncoding('utf8');
  const notes: string[] = [];
  const command = {
    statusLine: new StatusLine(stderr, isTerminal),
    note: (line: string) => notes.push(line),
  } as unknown as SvcCommand;
  let at = 0;
  const report = batchProgress(command, () => at);
  for (const [moment, progress] of moments) {
    at = moment;
    report(progress);
  }
  return isTerminal
    ? String(stderr.read() ?? '')
        .split(ERASE_LINE)
        .slice(1)
    : notes;
}

const users = (done: number, total?: number) => ({ collection: 'users', done, ...(total !== undefined && { total }) });

test('a terminal shows the progress of a step, and the remaining time once it is known', () => {
  assert.deepEqual(
    progressOutput(true, [
      [0, users(1000, 1_000_000)],
      [150, users(2000, 1_000_000)],
      [200, users(3000, 1_000_000)],
      [10_000, users(101_000, 1_000_000)],
      [20_000, users(201_000, 1_000_000)],
    ]),
    [
      '  users: 2,000 of 1,000,000 rows',
      '  users: 101,000 of 1,000,000 rows, 90 s left',
      '  users: 201,000 of 1,000,000 rows, 80 s left',
    ],
  );
});

test('checks are labeled, and the changes after them start from zero', () => {
  assert.deepEqual(
    progressOutput(true, [
      [0, { ...users(500, 1000), checksOnly: true }],
      [3000, { ...users(900, 1000), checksOnly: true }],
      [4000, users(500, 1000)],
      [8000, users(900, 1000)],
    ]),
    [
      '  users: 900 of 1,000 rows checked, 1 s left',
      '  users: 500 of 1,000 rows',
      '  users: 900 of 1,000 rows, 1 s left',
    ],
  );
});

test('without a terminal there is a line every ten seconds, with or without a total', () => {
  assert.deepEqual(
    progressOutput(false, [
      [0, users(1)],
      [5000, users(50)],
      [10_000, users(100)],
      [15_000, users(150)],
      [20_000, users(200)],
    ]),
    ['  users: 100 rows', '  users: 200 rows'],
  );
});

if (missing) test.skip('moved documents are counted in the terminal', missing);
else
  test(
    'moved documents are counted in the terminal, and the line is removed at the end',
    async () => {
      const database = await freshMongo();
      try {
        const shop = project(
          {},
          {
            databases: { main: { dialect: 'mongodb', url: database.url, options: { batchSize: 200 } } },
          },
        );
        shop.schema({ users: { id: { type: 'String', primaryKey: true }, name: 'String' } });
        assert.equal((await shop.svc('db', 'schema', 'generate')).status, 0);
        assert.equal((await shop.svc('db', 'migrate')).status, 0);
        await database.on((client, name) =>
          client
            .db(name)
            .collection('users')
            .insertMany(Array.from({ length: 6000 }, (_, n) => ({ id: `u${n}`, name: `n${n}` }))),
        );
        shop.schema({
          users: {
            id: { type: 'String', primaryKey: true },
            name: 'String',
            kind: { type: 'String', default: 'person' },
          },
        });
        assert.equal((await shop.svc('db', 'schema', 'generate')).status, 0);
        const migrating = terminal(['db', 'migrate'], { cwd: shop.root });
        await migrating.until(/users: [\d,]+ of 6,000/);
        assert.equal(await migrating.ended, 0, migrating.shown());
        const [, last = ''] = migrating
          .shown()
          .split(/users: [\d,]+ of 6,000[^\r]*/)
          .slice(-2);
        assert.ok(last.startsWith(`${ERASE_LINE}  20`), JSON.stringify(last));
      } finally {
        await database.drop();
      }
    },
    LONG,
  );
