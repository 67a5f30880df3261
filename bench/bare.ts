import { createHash } from 'node:crypto';
import type { Engine } from './engine.ts';
import { svcMigration, type WorkloadMigration } from './workload.ts';

/** The statements and history writes that svc sends, for `peers/bare.mjs`. */
export function bareStatements(
  { history }: Engine,
  steps: readonly WorkloadMigration[],
): { readonly setup: string; readonly migrations: readonly string[] } {
  return {
    setup: history.setup,
    migrations: steps.map((step, index) => {
      const migration = svcMigration(step);
      const hash = createHash('sha256').update(JSON.stringify(migration)).digest('hex');
      const row =
        `INSERT INTO _svc_migrations VALUES ('${step.tag}', ${index + 1}, '${migration.name}', 'file', 'completed', ${history.now}, NULL, ` +
        `${history.elapsed}, '${hash}', '${JSON.stringify(migration)}', 1, 1, NULL, '0.1.0', 'bench', 1, 1)`;
      return history.atomically(step.sql, row);
    }),
  };
}
