import * as assert from 'node:assert/strict';
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { assertExit, json, project } from './project.ts';
import { svcHere } from './svc-here.ts';

const SCHEMA = 'svc/database/schema.json';
const OBJECTS = 'svc/database/objects';
const MIGRATIONS = 'svc/database/migrations/main';

/** What the catalog says of each table or object. */
export type Facts = Map<string, Set<string>>;

/**
 * Of a table or an object: every fact is the same; a warning says what is missing; a warning says what is something else; or
 * it is not the same, and no warning says so.
 */
export type RemadeOutcome = 'same' | 'refused' | 'different' | 'silent';

export interface Remade {
  readonly outcomes: ReadonlyMap<string, RemadeOutcome>;
  /** The warnings about the tables that are not the same. */
  readonly reasons: ReadonlyMap<string, readonly string[]>;
  /** The tables that are not the same, of which a warning says so. */
  readonly said: readonly string[];
  /** The tables that are not the same, with what differs. */
  readonly silent: readonly object[];
}

interface Databases {
  /** The URL of a database with tables, and its facts. */
  readonly from: string;
  readonly before: Facts;
  /** The URL of an empty one. */
  readonly to: string;
  /** What the configuration says of both, next to the URL. */
  readonly options?: object;
  readonly readMade: () => Promise<Facts>;
}

/** Pulls a database, makes it again from the files on an empty one, compares all facts, and rolls it back to nothing. */
export async function remakeFrom({ from, before, to, options = {}, readMade }: Databases): Promise<Remade> {
  const pulled = project({ main: from }, {}, {}, options);
  const { warnings } = json(assertExit(await svcHere(['db', 'schema', 'pull', '--json'], pulled.root)));
  assertExit(await svcHere(['db', 'migrate', 'baseline'], pulled.root));
  assert.match(assertExit(await svcHere(['db', 'schema', 'check'], pulled.root)).stdout, /^OK/);

  const made = project({ main: to }, {}, {}, options);
  made.write(SCHEMA, pulled.read(SCHEMA));
  if (existsSync(join(pulled.root, OBJECTS)))
    cpSync(join(pulled.root, OBJECTS), join(made.root, OBJECTS), { recursive: true });
  for (const file of pulled.files()) made.write(`${MIGRATIONS}/${file}`, pulled.read(`${MIGRATIONS}/${file}`));
  assertExit(await svcHere(['db', 'migrate'], made.root));
  assert.match(assertExit(await svcHere(['db', 'schema', 'generate'], made.root)).stdout, /^Nothing to generate/);
  assert.match(assertExit(await svcHere(['db', 'schema', 'check'], made.root)).stdout, /^OK/);
  const after = await readMade();

  const said: string[] = [];
  const silent: object[] = [];
  const outcomes = new Map<string, RemadeOutcome>();
  const reasons = new Map<string, readonly string[]>();
  for (const [name, known] of before) {
    const found = after.get(name) ?? new Set();
    const lost = [...known].filter((fact) => !found.has(fact));
    const gained = [...found].filter((fact) => !known.has(fact));
    const about = warnings.filter((line: string) => new RegExp(`\\b${name}\\b`).test(line));
    const isSame = lost.length + gained.length === 0;
    outcomes.set(
      name,
      isSame ? 'same' : about.length === 0 ? 'silent' : isLess(gained, lost) ? 'refused' : 'different',
    );
    if (isSame) continue;
    reasons.set(name, about);
    if (about.length > 0) said.push(name);
    else silent.push({ name, lost, gained });
  }
  for (const [name, gained] of after) {
    const isNamed = said.some((table) => name.startsWith(`${table}_`));
    if (before.has(name) || isNamed) continue;
    silent.push({ name, gained: [...gained] });
    outcomes.set(name, 'silent');
  }
  assertExit(await svcHere(['db', 'migrate', 'rollback', '--allow-destructive'], made.root));
  assert.deepEqual(await readMade(), new Map());
  return { outcomes, reasons, said: said.sort(), silent };
}

/** Whether each fact is one of the others without some of its words, so that nothing was made in place of what is missing. */
const isLess = (gained: readonly string[], lost: readonly string[]): boolean =>
  gained.every((fact) => lost.some((whole) => hasWordsInOrder(whole.split(' '), fact.split(' '))));

function hasWordsInOrder(words: readonly string[], sought: readonly string[]): boolean {
  let at = 0;
  for (const word of words) if (word === sought[at]) at += 1;
  return at === sought.length;
}
