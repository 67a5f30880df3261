import type { Statement } from '../../../core/dialect.ts';
import type { StatementFacts } from './grammar.ts';

/**
 * Placeholder for the quoted schema and a dot. `compile` is pure and does not know the schema, so the connection fills it
 * in. Names and literals cannot contain this character.
 */
export const SCHEMA_PLACEHOLDER = '\0';

/** A user's text, which names its own schemas and may change the session. */
export interface RawSql {
  readonly kind: 'raw';
  readonly sql: string;
  /** Names without a schema are those of the schema of the tables. */
  readonly inSchema?: true;
  /** The object that it drops, as `kind/name`. */
  readonly drops?: string;
}

/** The parts of a text between its schema placeholders. */
export interface SqlText {
  readonly kind: 'sql';
  readonly parts: readonly string[];
}

/** A statement from a text with schema placeholders. It is transactional and not destructive, unless `facts` say otherwise. */
export function sqlStatement(template: string, facts: StatementFacts = {}): Statement<SqlText> {
  return {
    text: template.replaceAll(SCHEMA_PLACEHOLDER, ''),
    run: { kind: 'sql', parts: template.split(SCHEMA_PLACEHOLDER) },
    transactional: true,
    destructive: false,
    ...facts,
  };
}

/** Whether the statement is a user's own. */
export const isRaw = ({ run }: Statement<{ readonly kind: string }>): boolean => run.kind === 'raw';

/** Placeholder for a literal. Names and literals cannot contain this character. */
export const LITERAL_PLACEHOLDER = '\u0000';

/** A reusable statement text and the literals for one execution. */
export class StatementTemplate {
  /** The same for every execution, so that it can be prepared once. */
  readonly text: string;
  readonly literals: readonly string[];

  constructor(text: string, literals: readonly string[] = []) {
    this.text = text;
    this.literals = literals;
  }

  /** The text with `replace` applied to each literal. */
  render(replace: (literal: string, index: number) => string = (literal) => literal): string {
    const [first = '', ...rest] = this.text.split(LITERAL_PLACEHOLDER);
    return first + rest.map((part, index) => replace(this.literals[index] ?? '', index) + part).join('');
  }
}
