import type { Statement } from '../../../core/dialect.ts';
import { resolved, SCHEMA } from '../../sql/text.ts';

/** A statement that runs these words of PL/pgSQL. */
export const block = (body: string): string => `DO ${dollars(body)}`;

/** The statement, behind a block that may refuse it. */
export const guarded = (guard: string, then: Statement): Statement => ({
  ...then,
  run: `${guard};\n${resolved(then.run, SCHEMA)}`.split(SCHEMA),
});

/** The table of that quoted name, inside a block; null where there is none. Unlike naming it, it takes no lock. */
export const relation = (quoted: string): string => `to_regclass(${dollars(SCHEMA + quoted)})`;

/** How each tag begins. No schema that is put in later has this in its name. */
export const DOLLARS = '$svc';

/** A literal in which the schema can be put later, whatever quotes are in its name. */
function dollars(text: string): string {
  let tag = `${DOLLARS}$`;
  for (let count = 1; text.includes(tag); count += 1) tag = `${DOLLARS}${count}$`;
  return `${tag}${text}${tag}`;
}
