import type { PreflightFailure } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { MigrationOperation } from '../../../../core/schema/operation.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { grantOf } from '../compile/grants.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { partsOf } from '../compile/statement-list.ts';

/** Grants to roles that the server does not have: roles belong to all of its databases, and no migration creates one. */
export async function unknownRoles(
  exec: ExecSql,
  operations: readonly MigrationOperation[],
): Promise<readonly PreflightFailure[]> {
  const given = operations.flatMap((operation, statement) =>
    (operation.type === 'createObject' || operation.type === 'replaceObject') &&
    operation.kind === 'grants' &&
    operation !== operations[statement - 1]
      ? partsOf(operation.definition).flatMap((part) =>
          grantOf(operation, part).roles.map((role) => ({ statement, role, name: operation.name })),
        )
      : [],
  );
  if (given.length === 0) return [];
  const roles = [...new Set(given.map(({ role }) => quoteLiteral(role)))].join(', ');
  const rows = await rowsOf(exec, `SELECT rolname FROM pg_roles WHERE rolname IN (${roles})`);
  const known = new Set(rows.map(({ rolname }) => String(rolname)));
  return given.flatMap(({ statement, role, name }) =>
    known.has(role) ? [] : [{ statement, error: unknownRoleError(role, name) }],
  );
}

const unknownRoleError = (role: string, name: string): SvcError =>
  new SvcError('migration_invalid', `The role "${role}" does not exist.`, {
    why: `The file grants/${name}.sql names it, and roles belong to all databases of a server: no migration creates them.`,
    state: 'Nothing was changed.',
    next: ['Create the role on the server, then run the command again.'],
  });
