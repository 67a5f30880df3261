import { type ExecSql, type Result, rowsOf } from '../../sql/session.ts';

/**
 * The rows of a query of the catalog. The server estimates such a high cost for it that it would compile it to machine code
 * (JIT), which takes several times as long as running it.
 */
export const catalogRows = (exec: ExecSql, text: string): Promise<Result['rows']> =>
  rowsOf(exec, `SET LOCAL jit = off; ${text}`);
