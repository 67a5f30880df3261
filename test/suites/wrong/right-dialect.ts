import type { Connection, Dialect } from '../../../core/dialect.ts';
import { postgresql } from '../../../plugins/dialects/postgresql/dialect.ts';

/** The dialect from which the wrong ones are made. */
export const right: Dialect = { ...postgresql } as Dialect;

/** The right dialect, with other members of its connections. */
export const withConnection = (change: (connection: Connection) => Partial<Connection>): Dialect => ({
  ...right,
  async connect(url, options) {
    const connection = await right.connect(url, options);
    return { ...connection, ...change(connection) };
  },
});
