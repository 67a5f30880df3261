import { release } from './down.ts';
import { type Engine, title, variable } from './engine.ts';
import { handshake } from './handshake.ts';
import { me } from './process.ts';
import { told } from './told.ts';
import { up } from './up.ts';

/** The servers that one run of tests uses, from its beginning to its end. */
export class RunServers {
  readonly #user = me();
  readonly #urls = new Map<Engine, string>();
  readonly #mending = new Map<Engine, Promise<string | undefined>>();
  readonly #say: (line: string) => void;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  /** Finds or starts them, and gives a line for each that is missing. */
  async up(engines: readonly Engine[]): Promise<readonly string[]> {
    if (engines.length === 0) return [];
    const all = await up(engines, {
      user: this.#user,
      tell: (engine, what) => this.#say(`${title(engine)}: ${what}`),
      onWait: () => this.#say('waits for another run, which brings up servers'),
    });
    const missing: string[] = [];
    for (const one of all) {
      if ('missing' in one) missing.push(one.missing);
      else {
        this.#urls.set(one.engine, one.url);
        this.#say(`${title(one.engine)} ${one.version}: ${one.how}`);
      }
    }
    return missing;
  }

  /** Where test files find them: in one place even when a server on another port comes up meanwhile. */
  environment(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#urls].map(([engine, url]) => [variable(engine), url]));
  }

  /** A line for each of these that was there and does not answer any more; it is started again. */
  async died(engines: readonly Engine[]): Promise<readonly string[]> {
    const all = await Promise.all(engines.map((engine) => this.#mended(engine)));
    return all.filter((line) => line !== undefined);
  }

  #mended(engine: Engine): Promise<string | undefined> {
    const running = this.#mending.get(engine);
    if (running) return running;
    const work = this.#mend(engine).finally(() => this.#mending.delete(engine));
    this.#mending.set(engine, work);
    return work;
  }

  async #mend(engine: Engine): Promise<string | undefined> {
    const url = this.#urls.get(engine);
    if (url === undefined) return undefined;
    const error = await handshake(engine, url).then(
      () => undefined,
      (reason: unknown) => told(reason),
    );
    if (error === undefined) return undefined;
    this.#urls.delete(engine);
    await this.up([engine]);
    return `${title(engine)}: its server died (${error})${this.#urls.has(engine) ? ' and was started again' : ''}`;
  }

  /** What nobody else uses and nobody asked to keep is stopped. */
  async end(): Promise<void> {
    if (this.#urls.size > 0) await release(this.#user);
  }
}
