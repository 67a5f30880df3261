import type { Exec, Result } from './session.ts';

/** Texts that are sent as one, at most. */
const MOST = 64;

interface Asked {
  readonly statements: readonly string[];
  readonly resolve: (results: readonly Result[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * What is asked for while another text is on its way is sent together: one round trip and one commit for all. The
 * engine runs a text of several statements as one transaction; where one of them fails, each is sent by itself.
 */
export class Group {
  readonly #exec: Exec;
  #asked: Asked[] = [];
  #sending = false;

  constructor(exec: Exec) {
    this.#exec = exec;
  }

  /** Statements that belong together, each with one result. */
  send(statements: readonly string[]): Promise<readonly Result[]> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ statements, resolve, reject });
      if (!this.#sending) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#sending = true;
    while (this.#asked.length > 0) {
      const together = this.#asked.splice(0, MOST);
      if (together.length === 1 || !(await this.#together(together))) {
        for (const one of together) await this.#alone(one);
      }
    }
    this.#sending = false;
  }

  async #together(asked: readonly Asked[]): Promise<boolean> {
    try {
      const results = await this.#exec(asked.flatMap(({ statements }) => statements).join(';\n'));
      let at = 0;
      for (const { statements, resolve } of asked) {
        resolve(results.slice(at, at + statements.length));
        at += statements.length;
      }
      return true;
    } catch {
      return false;
    }
  }

  async #alone({ statements, resolve, reject }: Asked): Promise<void> {
    try {
      resolve(await this.#exec(statements.join(';\n')));
    } catch (error) {
      reject(error);
    }
  }
}
