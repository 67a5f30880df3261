/** Where a value goes: no text or name of SQL has this character. */
const HOLE = '\u0000';

/** A statement that is sent again and again, and the literals that it has this time. */
export class Template {
  /** The same for every sending. */
  readonly text: string;
  readonly literals: readonly string[];

  constructor(text: string, literals: readonly string[] = []) {
    this.text = text;
    this.literals = literals;
  }

  /** `put` gives what stands in the text for a literal. */
  static of(write: (put: (literal: string) => string) => string): Template {
    const literals: string[] = [];
    const put = (literal: string): string => {
      literals.push(literal);
      return HOLE;
    };
    return new Template(write(put), literals);
  }

  /** One text, with what `at` gives for each literal in its place. */
  filled(at: (literal: string, index: number) => string = (literal) => literal): string {
    const [first = '', ...rest] = this.text.split(HOLE);
    return first + rest.map((part, index) => at(this.literals[index] ?? '', index) + part).join('');
  }

  /** The same literals in another text. */
  within(before: string, after: string): Template {
    return new Template(before + this.text + after, this.literals);
  }
}
