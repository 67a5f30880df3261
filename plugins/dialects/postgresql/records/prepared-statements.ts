import { processWide } from '../../../../core/process-wide.ts';
import type { ExecSql } from '../../sql/session.ts';
import type { StatementTemplate } from '../../sql/statement.ts';
import { codeOf } from '../connection/errors.ts';

/** The session lost its prepared statements, for example because raw SQL ran DEALLOCATE ALL. */
export const isPreparedStatementMissing = (error: unknown): boolean => codeOf(error) === '26000';

/** Connections share the session of PGlite. */
const prepared = processWide('postgresql-prepared', () => ({ count: 0 }));

/** Prepares a statement when it is sent for the second time, which halves the server's work for each further one. */
export class PreparedStatements {
  readonly #exec: ExecSql;
  readonly #sent = new Set<string>();
  readonly #names = new Map<string, Promise<string>>();

  constructor(exec: ExecSql) {
    this.#exec = exec;
  }

  /** The text to send for a template. */
  async text(template: StatementTemplate): Promise<string> {
    if (template.literals.length === 0) return template.text;
    if (!this.#sent.has(template.text)) {
      this.#sent.add(template.text);
      return template.render();
    }
    return `EXECUTE ${await this.#name(template)}(${template.literals.join(', ')})`;
  }

  #name(template: StatementTemplate): Promise<string> {
    let name = this.#names.get(template.text);
    if (!name) {
      name = this.#prepare(template);
      this.#names.set(template.text, name);
      name.catch(() => this.#names.delete(template.text));
    }
    return name;
  }

  async #prepare(template: StatementTemplate): Promise<string> {
    prepared.count += 1;
    const name = `svc_${prepared.count}`;
    await this.#exec(`PREPARE ${name} AS ${template.render((_, index) => `$${index + 1}`)}`);
    return name;
  }
}
