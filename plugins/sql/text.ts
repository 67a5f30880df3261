import type { Statement } from '../../core/dialect.ts';
import type { Json } from '../../core/json.ts';
import type { Facts } from './grammar.ts';

/**
 * Stands for the schema's name and a dot until the connection that runs a statement puts it in: compiling is pure
 * and does not know where tables live. No name and no literal can contain it.
 */
export const SCHEMA = '\0';

/** `marked` without its marks for people, and split at them for the connection. */
export function statement(marked: string, facts: Facts = {}): Statement {
  return {
    text: marked.replaceAll(SCHEMA, ''),
    run: marked.split(SCHEMA),
    transactional: true,
    destructive: false,
    ...facts,
  };
}

/** Whether it is the text of a user, which names its own schemas and may have changed the session. */
export function isUsers(run: Json): boolean {
  return Array.isArray(run) && run.length === 1;
}

/** The text to send, with `schema` (quoted, with its dot) at every mark; undefined for what is not a statement's text. */
export function resolved(run: Json, schema: string): string | undefined {
  return Array.isArray(run) ? run.join(schema) : undefined;
}
