import { quoteLiteral } from './literal.ts';

/** Of a row `given` of `aclexplode`: the role, and what follows it. */
export const ROLE = "CASE WHEN given.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(given.grantee)) END";
export const GRANT_OPTION = "CASE WHEN given.is_grantable AND given.grantee <> 0 THEN ' WITH GRANT OPTION' ELSE '' END";

/** The privileges of something, as an expression that may be null, and the letter and the owner by which it has them then. */
export interface Privileges {
  readonly acl: string;
  readonly type: string;
  readonly owner: string;
}

/** PL/pgSQL, with a record `given`, that gives what `on` names the privileges `wanted` and no others. */
export function setPrivileges(on: string, present: Privileges, wanted: Privileges): string {
  const each = ({ acl, type, owner }: Privileges): string =>
    `aclexplode(COALESCE(${acl}, acldefault('${type}', ${owner})))`;
  const revoke = `EXECUTE format('REVOKE ALL ON %s FROM %s', ${quoteLiteral(on)}, ${ROLE})`;
  const grant = `EXECUTE format('GRANT %s ON %s TO %s%s', given.privilege_type, ${quoteLiteral(on)}, ${ROLE}, ${GRANT_OPTION})`;
  return `IF ${present.acl} IS DISTINCT FROM ${wanted.acl} THEN FOR given IN SELECT DISTINCT grantee FROM ${each(present)} LOOP ${revoke}; END LOOP; FOR given IN SELECT * FROM ${each(wanted)} LOOP ${grant}; END LOOP; END IF`;
}
