import { type ExecSql, type Result, rowsOf } from '../../sql/session.ts';

/**
 * The rows of a query of the catalog. The server estimates such a high cost for it that it would compile it to machine code
 * (JIT), which takes several times as long as running it.
 */
export const catalogRows = (exec: ExecSql, text: string): Promise<Result['rows']> =>
  rowsOf(exec, `SET LOCAL jit = off; ${text}`);

/** SQL for whether something belongs to an extension. `oid` is an expression. */
export const ofExtension = (catalog: string, oid: string): string =>
  `EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = '${catalog}'::regclass AND e.objid = ${oid} AND e.deptype = 'e')`;
