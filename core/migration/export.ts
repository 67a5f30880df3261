import type { Adapter } from '../database/adapter.ts';
import { checkOwner, Ledger } from './ledger.ts';
import type { Migration } from './migration.ts';
import { disorder } from './order.ts';

export interface Exported {
  /** Completed ones that no file has, in the order of application. */
  readonly migrations: readonly Migration[];
  /** In words, what all of them make otherwise as files, which run in the order of their tags. */
  readonly disorder: readonly string[];
}

/** What `export` writes. */
export async function exportMigrations(adapter: Adapter, inFiles: ReadonlySet<string> = new Set()): Promise<Exported> {
  await checkOwner(adapter);
  const ledger = await Ledger.read(adapter.connection);
  const completed = (await ledger.migrations(adapter.connection)).map(({ migration }) => migration);
  return {
    migrations: completed.filter(({ tag }) => !inFiles.has(tag)),
    disorder: disorder(completed.map((migration) => ({ tag: migration.tag, origin: 'file', migration }))),
  };
}
