import * as assert from 'node:assert/strict';
import { start } from '../../cli/start.ts';
import { isSvcError, type SvcError } from '../../core/errors.ts';
import { escapeRegExp } from '../../core/match-text.ts';
import { type CommandResult, cleanEnv } from './cli.ts';
import { freshFolder } from './pglite.ts';
import { freshDatabase, unavailable } from './postgresql.ts';
import { assertExit, type Project, project } from './project.ts';
import { test } from './test.ts';

/** A project whose commands run in this process: a command that needs no server takes milliseconds. */
export interface AdviceProject extends Project {
  /** Runs a command with `--json`. */
  readonly svc: (...args: readonly string[]) => Promise<CommandResult>;
  /** Runs a command that must fail with this code. */
  fails(code: string, ...args: readonly string[]): Promise<CommandResult>;
  /** Runs the commands of an advice, as printed. `values` replace placeholders such as `<name>`. They must succeed. */
  follow(advice: string, values?: Readonly<Record<string, string>>): Promise<readonly CommandResult[]>;
}

export function adviceProject(
  databases: Readonly<Record<string, string>>,
  config: object = {},
  variables: Readonly<Record<string, string>> = {},
): AdviceProject {
  const shop = project(databases, config);
  const svc = (...args: readonly string[]): Promise<CommandResult> =>
    svcInProcess([...args, '--json'], shop.root, variables);
  return {
    ...shop,
    svc,
    async fails(code, ...args) {
      const ran = await svc(...args);
      assert.equal(JSON.parse(ran.stdout).code, code, `svc ${args.join(' ')}: ${ran.stdout}${ran.stderr}`);
      assert.notEqual(ran.status, 0);
      return ran;
    },
    async follow(advice, values = {}) {
      const results: CommandResult[] = [];
      for (const args of commandsOf(advice, values)) {
        const ran = await svc(...args);
        assert.equal(ran.status, 0, `"${advice}": svc ${args.join(' ')} failed: ${ran.stdout}${ran.stderr}`);
        results.push(ran);
      }
      assert.ok(results.length > 0, `no command in "${advice}"`);
      return results;
    },
  };
}

const missing = await unavailable();
const createDatabase = missing === undefined ? freshDatabase : freshFolder;

/** A test that needs the PostgreSQL server. */
export function testOnServer(name: string, body: () => Promise<void>): void {
  if (missing === undefined) test(name, body);
  else test.skip(name, missing);
}

export type Query = (text: string) => Promise<Record<string, unknown>[]>;

/** Runs `body` with a project on a new database of the server, and queries of another client. */
export async function withServer(
  body: (shop: AdviceProject, query: Query, url: string) => Promise<void>,
): Promise<void> {
  const { url, query, drop } = await freshDatabase();
  try {
    await body(adviceProject({ main: url }), query, url);
  } finally {
    await drop();
  }
}

/** Runs `body` with a project on a new database: of the PostgreSQL server, which is faster than PGlite, if there is one. */
export async function inShop(
  body: (shop: AdviceProject, url: string) => Promise<void>,
  config: object = {},
): Promise<void> {
  const { url, drop } = await createDatabase();
  try {
    await body(adviceProject({ main: url }, config), url);
  } finally {
    await drop();
  }
}

/** Generates a migration from each schema in turn, and applies it. */
export async function applied(shop: AdviceProject, ...schemas: readonly object[]): Promise<void> {
  for (const tables of schemas) {
    shop.schema(tables);
    assertExit(await shop.svc('db', 'schema', 'generate'));
    assertExit(await shop.svc('db', 'migrate'));
  }
}

/** Runs a command line in this process, in a folder. One at a time. */
export async function svcInProcess(
  args: readonly string[],
  cwd: string,
  variables: Readonly<Record<string, string | undefined>> = {},
): Promise<CommandResult> {
  const before = { cwd: process.cwd(), env: process.env, out: process.stdout.write, error: process.stderr.write };
  const printed = { stdout: '', stderr: '' };
  const into =
    (name: keyof typeof printed): typeof process.stdout.write =>
    (chunk: string | Uint8Array, encoding?: unknown, done?: unknown) => {
      printed[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
      const callback = typeof encoding === 'function' ? encoding : done;
      if (typeof callback === 'function') callback();
      return true;
    };
  for (const stream of [process.stdout, process.stderr]) stream.setMaxListeners(0);
  process.chdir(cwd);
  process.env = cleanEnv(variables);
  process.stdout.write = into('stdout');
  process.stderr.write = into('stderr');
  try {
    const status = await start(args);
    return { status, ...printed };
  } finally {
    process.stdout.write = before.out;
    process.stderr.write = before.error;
    process.env = before.env;
    process.chdir(before.cwd);
  }
}

/**
 * The advice of an error or of a result that is written in the source as `text`, where `<…>` is any value. The test
 * of all advice counts each `text` as tried, so the caller does what the advice says.
 */
export function advised(from: CommandResult | unknown, text: string): string {
  const next = nextOf(from);
  // Commands are completed with flags, and "svc" with npx.
  const pattern = text
    .split('<…>')
    .map((part) => escapeRegExp(part).replace(/(svc (?:db|approvals)(?: [a-z]+)*)/g, '$1(?: -.*?)?'))
    .join('[^]+?');
  const found = next.find((line) => new RegExp(`^${pattern}$`).test(line));
  return found ?? assert.fail(`no advice like "${text}" in ${JSON.stringify(next, null, 2)}: ${describe(from)}`);
}

function nextOf(from: unknown): readonly string[] {
  if (isSvcError(from)) return (from as SvcError).next;
  const { stdout } = from as CommandResult;
  const { nextActions, checks = [] } = JSON.parse(stdout);
  return [...nextActions, ...(checks as { next?: string[] }[]).flatMap(({ next = [] }) => next)];
}

const describe = (from: unknown): string => (isSvcError(from) ? from.message : JSON.stringify(from));

/** The words after `svc` of each command in an advice: up to an explanation after two spaces, or the next sentence. */
export function commandsOf(advice: string, values: Readonly<Record<string, string>> = {}): readonly string[][] {
  const filled = advice.replace(/<[^<>]+>/g, (name) => values[name] ?? assert.fail(`no value for ${name}: ${advice}`));
  return [
    ...filled.matchAll(
      /(?<![\w/@.-])(?:npx )?svc ((?:init|link|db|doctor|plugins|approvals|--)(?:'[^']*'|[^'\n])*?)(?=\s{2,}|,? (?:then|and|or|until)\b|[,;.](?:\s|$)|$)/g,
    ),
  ].map(([, words = '']) => [...words.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", '')));
}

/** The advice of the error that `work` throws, which has the code. */
export async function thrownError(work: () => unknown, code: string): Promise<SvcError> {
  try {
    await work();
  } catch (error) {
    assert.ok(isSvcError(error), String(error));
    assert.equal(error.code, code, error.message);
    return error;
  }
  return assert.fail(`${code} was not thrown`);
}
