import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { release } from './down.ts';
import { ENGINES, type Engine, title, urlVariable } from './engine.ts';
import { handshake } from './handshake.ts';
import { thisProcess } from './process.ts';
import { errorLine } from './program.ts';
import { up } from './up.ts';

/** The servers that one test run uses, from start to end. */
export class RunServers {
  readonly #user = thisProcess();
  readonly #urls = new Map<Engine, string>();
  readonly #restarts = new Map<Engine, Promise<string | undefined>>();
  readonly #log: (line: string) => void;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  /** Finds or starts them; returns a line for each that is missing. */
  async up(engines: readonly Engine[]): Promise<readonly string[]> {
    if (engines.length === 0) return [];
    const all = await up(engines, {
      user: this.#user,
      report: (engine, progress) => this.#log(`${title(engine)}: ${progress}`),
      onWait: () => this.#log('waiting for another run that is starting servers'),
    });
    const missing: string[] = [];
    for (const one of all) {
      if ('missing' in one) missing.push(one.missing);
      else {
        this.#urls.set(one.engine, one.url);
        this.#log(`${title(one.engine)} ${one.version}: ${one.how}`);
      }
    }
    return missing;
  }

  /** Pins the URLs for the test files, so that a server that appears on another port during the run is ignored. */
  environment(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#urls].map(([engine, url]) => [urlVariable(engine), url]));
  }

  /** Restarts those of these servers that no longer answer; returns a line for each. */
  async died(engines: readonly Engine[]): Promise<readonly string[]> {
    const all = await Promise.all(engines.map((engine) => this.#checkOnce(engine)));
    return all.filter((line) => line !== undefined);
  }

  #checkOnce(engine: Engine): Promise<string | undefined> {
    const running = this.#restarts.get(engine);
    if (running) return running;
    const check = this.#restartIfDead(engine).finally(() => this.#restarts.delete(engine));
    this.#restarts.set(engine, check);
    return check;
  }

  async #restartIfDead(engine: Engine): Promise<string | undefined> {
    const url = this.#urls.get(engine);
    if (url === undefined) return undefined;
    const error = await handshake(engine, url).then(
      () => undefined,
      (reason: unknown) => errorLine(reason),
    );
    if (error === undefined) return undefined;
    this.#urls.delete(engine);
    await this.up([engine]);
    return `${title(engine)}: its server died (${error})${this.#urls.has(engine) ? ' and was restarted' : ''}`;
  }

  /** Stops the servers that no other run uses, unless `npm run servers -- up` started them. */
  async end(): Promise<void> {
    if (this.#urls.size > 0) await release(this.#user);
  }
}

const FIND = fileURLToPath(new URL('find.ts', import.meta.url));

/** The engines whose servers a test file needs: those named in the files that import `find`, itself or its imports. */
export function neededEngines(file: string): readonly Engine[] {
  const texts = new Map<string, string>();
  const read = (path: string): void => {
    if (texts.has(path)) return;
    texts.set(path, readFileSync(path, 'utf8'));
    if (path !== FIND) for (const next of imported(path, texts.get(path) ?? '')) read(next);
  };
  read(resolve(file));
  const finders = [...texts].filter(([path, text]) => imported(path, text).includes(FIND)).map(([, text]) => text);
  return ENGINES.filter((engine) => finders.some((text) => new RegExp(`\\b${engine}\\b`).test(text)));
}

/** The imported files under test/; source files never look for a test server. */
function imported(path: string, text: string): readonly string[] {
  return [...text.matchAll(/^(?:import|export|\}).*\bfrom '(\.[^']*\.ts)'/gm)]
    .map((match) => resolve(dirname(path), match[1] ?? ''))
    .filter((next) => next.startsWith(dirname(dirname(FIND))) && existsSync(next));
}
