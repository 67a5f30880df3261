import { migrate } from '../../core/migration/migrate.ts';
import type { Migration } from '../../core/migration/migration.ts';
import type { DefinedMigration } from '../../core/migration/reconcile.ts';
import type { Target } from '../../core/migration/target.ts';
import type { MigrationOperation } from '../../core/schema/operation.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { definedInCode } from './migrations.ts';
import { freshDatabase, type PostgresqlTestDatabase } from './postgresql.ts';
import { connectTarget } from './target.ts';

export const ID = { name: 'id', type: 'integer', primaryKey: true, autoGenerate: true } as const;
export const N = { name: 'n', type: 'integer' } as const;
export const INDEX = { type: 'createIndex', collection: 'rows', index: 'rows_n', columns: [{ name: 'n' }] } as const;

let count = 0;
/** A migration of these operations, later than those before it. */
export function migration(up: readonly MigrationOperation[], online?: boolean): Migration {
  count += 1;
  const name = `change_${count}`;
  const tag = `20260101_${String(count).padStart(6, '0')}_${name}`;
  return { tag, name, up, down: [], irreversible: 'It is not needed.', ...(online !== undefined && { online }) };
}

export interface Fixture {
  readonly database: PostgresqlTestDatabase;
  readonly target: Target;
  /** The statements sent for migrations that run together. */
  sent(...migrations: readonly Migration[]): Promise<readonly string[]>;
  /** The migrations that are applied, and these. */
  after(...next: readonly Migration[]): readonly DefinedMigration[];
}

/** A database with the table `rows`. */
export async function withRows(rows: number, work: (fixture: Fixture) => Promise<void>): Promise<void> {
  const database = await freshDatabase();
  try {
    const target = await connectTarget(postgresql, database.url);
    const applied: Migration[] = [];
    const after = (...next: readonly Migration[]) => [...applied, ...next].map(definedInCode);
    const sent = async (...migrations: readonly Migration[]) => {
      const texts: string[] = [];
      await migrate(target, after(...migrations), {
        allowDestructive: true,
        onEvent: (event) => {
          if (event.type === 'finished') texts.push(...event.statements);
        },
      });
      applied.push(...migrations);
      return texts;
    };
    await sent(migration([{ type: 'createCollection', name: 'rows', fields: [ID, N] }]));
    await database.query(`INSERT INTO rows (n) SELECT generate_series(1, ${rows})`);
    await work({ database, target, sent, after });
    await target.connection.close();
  } finally {
    await database.drop();
  }
}

let owners = 0;
/** A target whose user owns `rows`, and may use every other table. `database.query` still is the user of the tests. */
export async function withOwner(
  database: PostgresqlTestDatabase,
  work: (target: Target, owner: string) => Promise<void>,
): Promise<void> {
  owners += 1;
  const owner = `svc_owner_${process.pid}_${owners}`;
  await database.query(`CREATE ROLE ${owner} LOGIN; GRANT ALL ON SCHEMA public TO ${owner};
    GRANT ALL ON ALL TABLES IN SCHEMA public TO ${owner}; ALTER TABLE rows OWNER TO ${owner}`);
  const url = new URL(database.url);
  url.username = owner;
  const target = await connectTarget(postgresql, url.href);
  try {
    await work(target, owner);
  } finally {
    await target.connection.close();
    await database.query(`REASSIGN OWNED BY ${owner} TO CURRENT_USER; DROP OWNED BY ${owner}; DROP ROLE ${owner}`);
  }
}
