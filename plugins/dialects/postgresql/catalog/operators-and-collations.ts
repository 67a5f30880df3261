import { functionName, operatorName } from './aggregate-statement.ts';
import { isMade, isVisibleName } from './casts-and-text-search.ts';
import { modelName, printedName } from './namespaces.ts';

/** SQL for a collation as a statement names it. */
export const collationName = (oid: string): string =>
  `(SELECT ${isVisibleName('pg_collation_is_visible(l.oid)', 'l.collnamespace', 'l.collname')} FROM pg_collation l WHERE l.oid = ${oid})`;

/** It is unique with its arguments only. */
const ARGUMENTS =
  "'(' || COALESCE(format_type(NULLIF(op.oprleft, 0), NULL), 'NONE') || ', ' || COALESCE(format_type(NULLIF(op.oprright, 0), NULL), 'NONE') || ')'";

/** What may be said after the function, in the order of the manual; null where it is not. */
const PARTS: readonly (readonly [string, string])[] = [
  ['LEFTARG', 'format_type(NULLIF(op.oprleft, 0), NULL)'],
  ['RIGHTARG', 'format_type(NULLIF(op.oprright, 0), NULL)'],
  ['COMMUTATOR', operatorName('op.oprcom')],
  ['NEGATOR', operatorName('op.oprnegate')],
  ['RESTRICT', functionName('op.oprrest')],
  ['JOIN', functionName('op.oprjoin')],
];

/** The names of its parts are those of the newest catalog, and of those before it. */
const LOCALE = "COALESCE(to_jsonb(l) ->> 'colllocale', to_jsonb(l) ->> 'colliculocale', l.collcollate::text)";

/** Rows of `made`. */
export const OPERATORS_AND_COLLATIONS = `SELECT 'operator', ns.prefix || op.oprname || ${ARGUMENTS}, 'CREATE OPERATOR ' || ns.path || op.oprname || E' (\\n  FUNCTION = ' || ${functionName('op.oprcode')}
    ${PARTS.map(([word, value]) => `|| COALESCE(E',\\n  ${word} = ' || ${value}, '')`).join('\n    ')}
    || CASE WHEN op.oprcanhash THEN E',\\n  HASHES' ELSE '' END || CASE WHEN op.oprcanmerge THEN E',\\n  MERGES' ELSE '' END || E'\\n)',
  'OPERATOR ' || ns.path || op.oprname || ' ' || ${ARGUMENTS}, obj_description(op.oid, 'pg_operator'), 'pg_operator'::regclass, op.oid
FROM pg_operator op JOIN ns ON ns.oid = op.oprnamespace WHERE ${isMade('pg_operator', 'op.oid')} AND op.oprcode <> 0
UNION ALL SELECT 'collation', ${modelName('l.collname')}, 'CREATE COLLATION ' || ${printedName('l.collname')} || ' ('
  || CASE l.collprovider WHEN 'i' THEN 'PROVIDER = icu, ' WHEN 'b' THEN 'PROVIDER = builtin, ' ELSE '' END
  || CASE WHEN l.collprovider = 'c' AND l.collcollate <> l.collctype THEN 'LC_COLLATE = ' || quote_literal(l.collcollate) || ', LC_CTYPE = ' || quote_literal(l.collctype) ELSE 'LOCALE = ' || quote_literal(${LOCALE}) END
  || CASE WHEN l.collisdeterministic THEN '' ELSE ', DETERMINISTIC = false' END || COALESCE(', RULES = ' || quote_literal(to_jsonb(l) ->> 'collicurules'), '') || ')',
  'COLLATION ' || ${printedName('l.collname')}, obj_description(l.oid, 'pg_collation'), 'pg_collation'::regclass, l.oid
FROM pg_collation l JOIN ns ON ns.oid = l.collnamespace WHERE ${isMade('pg_collation', 'l.oid')}`;
