import { printedName } from './namespaces.ts';

/** SQL for the name of a function, which `regproc` qualifies where there are several of it. */
export const functionName = (oid: string): string =>
  `(SELECT CASE WHEN pg_function_is_visible(f.oid) THEN '' ELSE quote_ident(n.nspname) || '.' END || quote_ident(f.proname) FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace WHERE f.oid = ${oid})`;

/** SQL for an operator, as `OPERATOR(…)`; null for none. */
export const operatorName = (oid: string): string =>
  `(SELECT 'OPERATOR(' || CASE WHEN pg_operator_is_visible(o.oid) THEN '' ELSE quote_ident(n.nspname) || '.' END || o.oprname || ')' FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace WHERE o.oid = ${oid})`;

const finalModify = (column: string): string =>
  `CASE a.${column} WHEN CASE a.aggkind WHEN 'n' THEN 'r' ELSE 'w' END THEN NULL WHEN 'r' THEN 'READ_ONLY' WHEN 's' THEN 'SHAREABLE' ELSE 'READ_WRITE' END`;

/** What may be said after the state, in the order of the manual; null where it is the default. */
const PARTS: readonly (readonly [string, string])[] = [
  ['SSPACE', 'NULLIF(a.aggtransspace, 0)::text'],
  ['FINALFUNC', functionName('a.aggfinalfn')],
  ['FINALFUNC_EXTRA', "CASE WHEN a.aggfinalextra THEN 'true' END"],
  ['FINALFUNC_MODIFY', finalModify('aggfinalmodify')],
  ['COMBINEFUNC', functionName('a.aggcombinefn')],
  ['SERIALFUNC', functionName('a.aggserialfn')],
  ['DESERIALFUNC', functionName('a.aggdeserialfn')],
  ['INITCOND', 'quote_literal(a.agginitval)'],
  ['MSFUNC', functionName('a.aggmtransfn')],
  ['MINVFUNC', functionName('a.aggminvtransfn')],
  ['MSTYPE', 'format_type(NULLIF(a.aggmtranstype, 0), NULL)'],
  ['MSSPACE', 'NULLIF(a.aggmtransspace, 0)::text'],
  ['MFINALFUNC', functionName('a.aggmfinalfn')],
  ['MFINALFUNC_EXTRA', "CASE WHEN a.aggmfinalextra THEN 'true' END"],
  ['MFINALFUNC_MODIFY', `CASE WHEN a.aggmfinalfn <> 0 THEN ${finalModify('aggmfinalmodify')} END`],
  ['MINITCOND', 'quote_literal(a.aggminitval)'],
  ['SORTOP', operatorName('a.aggsortop')],
  ['PARALLEL', "CASE p.proparallel WHEN 's' THEN 'SAFE' WHEN 'r' THEN 'RESTRICTED' END"],
  ['HYPOTHETICAL', "CASE a.aggkind WHEN 'h' THEN 'true' END"],
];

/** SQL for the arguments that identify a function, a procedure or an aggregate. `p` is its row of pg_proc. */
export const ROUTINE_ARGUMENTS =
  "CASE WHEN p.prokind = 'a' AND p.pronargs = 0 THEN '*' ELSE pg_get_function_identity_arguments(p.oid) END";

/** SQL for the text of an aggregate; null for another function. `p` is its row of pg_proc. */
export const AGGREGATE_STATEMENT = `(SELECT 'CREATE AGGREGATE ' || ${printedName('p.proname')} || '(' || ${ROUTINE_ARGUMENTS} || E') (\\n  SFUNC = ' || ${functionName('a.aggtransfn')} || E',\\n  STYPE = ' || format_type(a.aggtranstype, NULL)
    ${PARTS.map(([word, value]) => `|| COALESCE(E',\\n  ${word} = ' || ${value}, '')`).join('\n    ')}
    || E'\\n)' FROM pg_aggregate a WHERE a.aggfnoid = p.oid)`;
