import { createHash } from 'node:crypto';
import { type Step, svcMigration } from './workload.ts';

/** The statements and history writes of svc, for `peers/bare-pg.mjs`. */
export function bareStatements(steps: readonly Step[]): {
  readonly setup: string;
  readonly migrations: readonly string[];
} {
  return {
    setup: `CREATE TABLE "_svc_migrations" (
  "tag" varchar(255) PRIMARY KEY, "seq" bigint NOT NULL, "name" text NOT NULL, "origin" varchar(255) NOT NULL, "status" varchar(255) NOT NULL,
  "applied_at" timestamptz(3), "rolled_back_at" timestamptz(3), "duration_ms" double precision, "checksum" varchar(255) NOT NULL,
  "migration" jsonb NOT NULL, "step" integer NOT NULL, "steps" integer NOT NULL, "error" text, "sdk_version" varchar(255) NOT NULL,
  "applied_by" text NOT NULL, "epoch" bigint NOT NULL, "_version" bigint NOT NULL);
CREATE INDEX "_svc_migrations_bySeq" ON "_svc_migrations" ("seq", "tag");`,
    migrations: steps.map((step, index) => {
      const migration = svcMigration(step);
      const hash = createHash('sha256').update(JSON.stringify(migration)).digest('hex');
      return (
        `BEGIN; ${step.sql}
INSERT INTO "_svc_migrations" VALUES ('${step.tag}', ${index + 1}, '${migration.name}', 'file', 'completed', clock_timestamp(), NULL, ` +
        `extract(epoch FROM clock_timestamp() - transaction_timestamp()) * 1000, '${hash}', '${JSON.stringify(migration)}', 1, 1, NULL, '0.1.0', 'bench', 1, 1); COMMIT;`
      );
    }),
  };
}
