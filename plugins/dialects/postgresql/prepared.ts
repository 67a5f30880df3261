import type { Exec } from '../../sql/session.ts';
import type { Template } from '../../sql/template.ts';
import { codeOf } from './errors.ts';

/** The session has none of them any longer: a migration's own SQL may say DEALLOCATE ALL. */
export const isForgotten = (error: unknown): boolean => codeOf(error) === '26000';

let made = 0;

/**
 * Statements that the server parses and plans once for this session, from their second sending on: half the work of
 * sending them as text.
 */
export class Prepared {
  readonly #exec: Exec;
  readonly #sent = new Set<string>();
  readonly #names = new Map<string, Promise<string>>();

  constructor(exec: Exec) {
    this.#exec = exec;
  }

  /** What to send for a template. */
  async text(template: Template): Promise<string> {
    if (template.literals.length === 0) return template.text;
    if (!this.#sent.has(template.text)) {
      this.#sent.add(template.text);
      return template.filled();
    }
    return `EXECUTE ${await this.#name(template)}(${template.literals.join(', ')})`;
  }

  #name(template: Template): Promise<string> {
    let name = this.#names.get(template.text);
    if (!name) {
      name = this.#prepare(template);
      this.#names.set(template.text, name);
      name.catch(() => this.#names.delete(template.text));
    }
    return name;
  }

  async #prepare(template: Template): Promise<string> {
    made += 1;
    const name = `svc_${made}`;
    await this.#exec(`PREPARE ${name} AS ${template.filled((_, index) => `$${index + 1}`)}`);
    return name;
  }
}
