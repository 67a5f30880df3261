import * as assert from 'node:assert/strict';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { selfSigned } from './self-signed.ts';
import { ORIGIN } from './sign-in.ts';
import { test } from './test.ts';

type Handler = (request: Request) => Promise<Response>;

interface PageOptions {
  /** Serves `ORIGIN` to the browser. */
  readonly handler: Handler;
  /** Default: true. */
  readonly scripts?: boolean;
  /** What else the browser may request, such as a provider; errors on the console of its pages are not ours. */
  readonly otherOrigins?: readonly string[];
  /** What must be reported, and nothing else may be. Default: nothing. */
  readonly expected?: RegExp;
}

/**
 * Runs `body` with a page of a new browser profile. Fails for an error on the console (each violation of the
 * Content-Security-Policy is one), an exception of a script, and a request to another origin.
 */
export type WithPage = (options: PageOptions, body: (page: Page) => Promise<void>) => Promise<void>;

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** Declares tests in one Chromium; without it, one skipped test with the reason. */
export function chromiumTests(title: string, declare: (withPage: WithPage) => void): void {
  const found = findChromium();
  if ('missing' in found) {
    test.skip(title, found.missing);
    return;
  }
  let running: Running | undefined;
  test.before(async () => {
    running = await start(found.path);
  });
  test.after(() => running?.close());
  declare((options, body) => {
    if (running === undefined) throw new Error('Chromium was not started');
    return withPage(running, options, body);
  });
}

/** At `SVC_TEST_CHROMIUM`, or in the path. Throws without one under `SVC_TEST_REQUIRE=all`. */
function findChromium(): { readonly path: string } | { readonly missing: string } {
  const configured = process.env.SVC_TEST_CHROMIUM;
  const folders = (process.env.PATH ?? '').split(delimiter);
  const candidates = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  const path = (configured === undefined ? candidates : [configured]).find(isExecutable);
  if (path !== undefined) return { path };
  const wanted = configured ?? `${NAMES.join(', ')} in the path`;
  const missing = `Chromium: there is no ${wanted}: apt-get install chromium, or set SVC_TEST_CHROMIUM`;
  if (configured !== undefined || process.env.SVC_TEST_REQUIRE === 'all') throw new Error(missing);
  return { missing };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

interface Running {
  readonly browser: Browser;
  /** Answers `ORIGIN` from now on. Returns what did before. */
  serve(handler: Handler): Handler;
  close(): Promise<void>;
}

async function start(executablePath: string): Promise<Running> {
  const { chromium } = await import('playwright-core');
  const { hostname } = new URL(ORIGIN);
  let current: Handler = async () => new Response(null, { status: 404 });
  const server = createAdaptorServer({
    fetch: (request) => current(request),
    createServer,
    serverOptions: selfSigned(hostname),
  }) as Server;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const browser = await chromium.launch({
    executablePath,
    // Looks no name up, and connects to nothing but loopback addresses.
    args: [`--host-resolver-rules=MAP ${hostname}:443 127.0.0.1:${port},MAP * ~NOTFOUND,EXCLUDE 127.0.0.1`],
  });
  return {
    browser,
    serve(handler) {
      const previous = current;
      current = handler;
      return previous;
    },
    async close() {
      await browser.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

async function withPage(
  { browser, serve }: Running,
  { handler, scripts = true, otherOrigins = [], expected }: PageOptions,
  body: (page: Page) => Promise<void>,
): Promise<void> {
  const previous = serve(handler);
  const context = await browser.newContext({ javaScriptEnabled: scripts, ignoreHTTPSErrors: true });
  const problems = problemsOf(context, otherOrigins);
  try {
    await body(await context.newPage());
  } finally {
    await context.close();
    serve(previous);
  }
  const unexpected = problems.filter((problem) => !expected?.test(problem));
  assert.deepEqual(unexpected, [], 'the browser reports problems');
  assert.ok(expected === undefined || problems.length > 0, `the browser does not report ${expected}`);
}

/** What the browser reports, which grows while the context is used. */
function problemsOf(context: BrowserContext, otherOrigins: readonly string[]): readonly string[] {
  const problems: string[] = [];
  const isOther = (url: string): boolean => URL.canParse(url) && otherOrigins.includes(new URL(url).origin);
  context.on('request', (request) => {
    const url = request.url();
    if (new URL(url).origin !== ORIGIN && !isOther(url)) problems.push(`a request to ${url}`);
  });
  context.on('console', (message) => {
    // The status of a page, which is for the test to compare.
    if (message.type() !== 'error' || message.text().startsWith('Failed to load resource: the server responded'))
      return;
    if (!isOther(message.location().url)) problems.push(message.text());
  });
  context.on('response', (response) => {
    if (response.status() < 400 || response.request().isNavigationRequest() || isOther(response.url())) return;
    problems.push(`${response.status()} of ${response.url()}`);
  });
  context.on('weberror', (error) => problems.push(String(error.error())));
  return problems;
}
