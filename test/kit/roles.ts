import type { TestEngine } from './engines.ts';
import { connectedBy, postgresql } from './object-files.ts';
import { LONG } from './project.ts';
import { test } from './test.ts';

export type Query = (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

export interface Fixture {
  readonly engine: TestEngine;
  /** Two roles, which belong to the whole server. */
  readonly reader: string;
  readonly writer: string;
  readonly url: string;
  readonly query: Query;
}

async function withRoles(engine: TestEngine, work: (fixture: Fixture) => Promise<void>): Promise<void> {
  await engine.withUrl(async (url, connect) => {
    const query: Query = (text) => connectedBy(connect)((connection) => connection.query(text));
    const id = Math.random().toString(36).slice(2, 10);
    const [reader, writer] = [`svc_reader_${id}`, `"svc Writer ${id}"`];
    await query(`create role ${reader}; create role ${writer}`);
    try {
      await work({ engine, reader, writer, url, query });
    } finally {
      await query(`drop owned by ${reader}, ${writer}; drop role ${reader}, ${writer}`);
    }
  });
}

/** A test on each server of PostgreSQL, with two roles. */
export function onPostgresql(what: string, work: (fixture: Fixture) => Promise<void>): void {
  for (const engine of postgresql) {
    const title = `${engine.name}: ${what}`;
    if (engine.missing === undefined) test(title, () => withRoles(engine, work), LONG);
    else test.skip(title, engine.missing);
  }
}
