import * as assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import type { Connection } from '../../core/dialect.ts';
import { readObjects } from '../../core/migration/objects.ts';
import { engines, type TestEngine } from './engines.ts';
import { assertExit, json, LONG, type Project, project } from './project.ts';
import { test } from './test.ts';

export const OBJECTS = 'svc/database/objects/main';

export interface Fixture extends Project {
  query(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  objects(): Promise<ReadonlyMap<string, string>>;
  readonly edit: (file: string, change: (text: string) => string) => void;
}

type Body = (fixture: Fixture, engine: TestEngine) => Promise<void>;

type Connect = Parameters<Parameters<TestEngine['withUrl']>[0]>[1];

/** Runs work on a connection of its own: an embedded database has one at a time. */
export const connectedBy =
  (connect: Connect) =>
  async <T>(work: (connection: Connection) => Promise<T>): Promise<T> => {
    const { connection } = await connect();
    try {
      return await work(connection);
    } finally {
      await connection.close();
    }
  };

function fixtureOf(url: string, connect: Connect): Fixture {
  const connected = connectedBy(connect);
  const main = project({ main: url });
  return {
    ...main,
    query: (text) => connected((connection) => connection.query(text)),
    objects: () =>
      connected(
        async (connection) =>
          new Map([...(await readObjects(connection))].map(([key, { definition }]) => [key, definition])),
      ),
    edit: (file, change) => main.write(file, change(main.read(file))),
  };
}

/** A server and PGlite. */
export const postgresql = engines.filter(({ dialect }) => dialect.name === 'postgresql');

export function on(title: string, body: Body, setup: string | readonly string[] = [], list = engines): void {
  for (const engine of list) {
    if (engine.missing !== undefined) {
      test.skip(`${engine.name}: ${title}`, engine.missing);
      continue;
    }
    test(
      `${engine.name}: ${title}`,
      () =>
        engine.withUrl(async (url, connect) => {
          const fixture = fixtureOf(url, connect);
          for (const text of typeof setup === 'string' ? [setup] : setup) await fixture.query(text);
          await body(fixture, engine);
        }),
      LONG,
    );
  }
}

/** Pulls a database, makes it again on an empty one, compares the objects, and rolls it back to nothing. */
export async function makeAgain(
  fixture: Fixture,
  engine: TestEngine,
  use: (made: Fixture) => Promise<void>,
): Promise<void> {
  await adopted(fixture);
  const { warnings, objects } = json(assertExit(await fixture.svc('db', 'schema', 'pull', '--json')));
  assert.deepEqual(warnings, []);
  const before = await fixture.objects();
  assert.deepEqual([...objects].sort(), [...before.keys()].sort());
  await engine.withUrl(async (url, connect) => {
    const made = fixtureOf(url, connect);
    cpSync(join(fixture.root, 'svc'), join(made.root, 'svc'), { recursive: true });
    assertExit(await made.svc('db', 'migrate'));
    assert.match(assertExit(await made.svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
    assert.match(assertExit(await made.svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
    await use(made);
    assert.deepEqual(await made.objects(), before);
    assertExit(await made.svc('db', 'migrate', 'rollback', '--allow-destructive'));
    assert.deepEqual(await made.objects(), new Map());
  });
}

export async function adopted({ svc }: Fixture): Promise<void> {
  assertExit(await svc('db', 'schema', 'pull'));
  assertExit(await svc('db', 'migrate', 'baseline'));
  assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
}

export const types = (fixture: Project): readonly string[] => {
  const file = fixture.files().at(-1);
  const { up } = JSON.parse(fixture.read(`svc/database/migrations/main/${file}`));
  return up.map(({ type, kind, name, collection }: Record<string, string>) =>
    [type, kind === undefined ? (collection ?? name) : `${kind}/${name}`].join(' '),
  );
};
