import { quoteLiteral } from '../compile/literal.ts';

/** The schemas of a connection. Names without a schema are of `home`. */
export interface Schemas {
  readonly home: string;
  readonly others: readonly string[];
  /** Whether privileges are objects. */
  readonly grants?: boolean;
}

/** What is read: the schemas, or the temporary one, whose objects may use what is in the schemas. */
export interface Scope extends Schemas {
  readonly isTemporary?: true;
}

const TEMPORARY = 'oid = pg_my_temp_schema()';

const isListed = ({ home, others }: Schemas): string =>
  `nspname IN (${[home, ...others].map(quoteLiteral).join(', ')})`;

/**
 * Common table expressions: `ns` has what is read, and `spaces` what may be used. A name with a dot always has its schema before it,
 * which the names of the home schema do not have otherwise.
 */
export function NAMESPACES(scope: Scope): string {
  const { home, isTemporary } = scope;
  const isHome = isTemporary ? 'true' : `nspname = ${quoteLiteral(home)}`;
  const prefix = isTemporary ? "''" : "nspname || '.'";
  const path = isTemporary ? "''" : "quote_ident(nspname) || '.'";
  return `
spaces AS MATERIALIZED (SELECT oid FROM pg_namespace WHERE ${isListed(scope)}${isTemporary ? ` OR ${TEMPORARY}` : ''}),
ns AS MATERIALIZED (SELECT oid, nspname, ${isHome} AS is_home, CASE WHEN ${isHome} THEN '' ELSE ${prefix} END AS prefix, ${prefix} AS prefix_of_dotted,
  CASE WHEN ${isHome} THEN '' ELSE ${path} END AS path, ${path} AS path_of_dotted FROM pg_namespace WHERE ${isTemporary ? TEMPORARY : isListed(scope)})`;
}

/** SQL for the name of something in a schema of `ns` as models have it. */
export const modelName = (name: string): string =>
  `(CASE WHEN position('.' in ${name}) = 0 THEN ns.prefix ELSE ns.prefix_of_dotted END || ${name})`;

/** SQL for the same name in a statement. */
export const printedName = (name: string): string =>
  `(CASE WHEN position('.' in ${name}) = 0 THEN ns.path ELSE ns.path_of_dotted END || quote_ident(${name}))`;

/** SQL for the model's name of a relation, given its alias; null for one of another schema. */
export const relationName = (alias: string): string =>
  `(SELECT ${modelName(`${alias}.relname`)} FROM ns WHERE ns.oid = ${alias}.relnamespace)`;

/** SQL for the name of what belongs to a table, after the one of the table and a dot: quoted if it has a dot itself. */
export const memberName = (name: string): string =>
  `CASE WHEN ${name} ~ '[."]' THEN quote_ident(${name}) ELSE ${name} END`;
