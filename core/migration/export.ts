import type { Adapter } from '../database/adapter.ts';
import { checkOwner, Ledger } from './ledger.ts';
import type { Migration } from './migration.ts';

/** Completed migrations of the history that no file has, in the order of application: what `export` writes. */
export async function exportMigrations(
  adapter: Adapter,
  inFiles: ReadonlySet<string> = new Set(),
): Promise<Migration[]> {
  await checkOwner(adapter);
  const ledger = await Ledger.read(adapter.connection);
  const completed = await ledger.migrations(adapter.connection);
  return completed.map(({ migration }) => migration).filter(({ tag }) => !inFiles.has(tag));
}
