import { SvcError } from '../errors.ts';
import { type MetaRow, meta } from '../migration/history.ts';
import { type AnyRecordDefinition, anyDefinition } from '../records.ts';
import type { StoreHome } from './home.ts';

/** Whose records they are: those of another product or environment are never mixed with them. */
export interface Owner {
  readonly product: string;
  readonly env: string;
  /** The database's tag in the configuration. */
  readonly database: string;
}

export interface Tables {
  /** Of the row in `_svc_meta` that keeps their version. */
  readonly id: Exclude<MetaRow['id'], 'meta'>;
  /** Grows when `definitions` change. */
  readonly version: number;
  readonly definitions: readonly AnyRecordDefinition[];
}

/** Makes tables on their first use, under the migration lock, and brings older ones up to date. One read when they are. */
export async function openTables(home: StoreHome, { id, version, definitions }: Tables, owner: Owner): Promise<void> {
  const store = home.records(meta);
  const isCurrent = async (): Promise<boolean> => {
    const found = (await store.get(id))?.record;
    return found !== undefined && isOurs(found, owner, version);
  };
  if (await isCurrent()) return;
  await home.exclusively(async () => {
    if (await isCurrent()) return;
    await home.ensure([anyDefinition(meta), ...definitions]);
    const row: MetaRow = { id, version, ...owner };
    const before = await store.get(id);
    if (before) await store.replace(id, before.version, row);
    else await store.insert(row);
  });
}

/** True when nothing is to be done, false for an older version; refuses what belongs to others or to a newer SDK. */
function isOurs(found: MetaRow, owner: Owner, version: number): boolean {
  if (found.product !== owner.product || found.env !== owner.env) {
    throw new SvcError(
      'database_foreign',
      `The approvals in this database belong to ${found.product} (${found.env}), not to ${owner.product} (${owner.env}).`,
      {
        why: 'Its _svc_meta says so: a URL of the configuration may point at the wrong server.',
        state: 'Nothing was changed.',
        next: ['Correct the URL in svc.config, or name another database in approvals.store.'],
      },
    );
  }
  if (found.version > version) {
    throw new SvcError('history_newer', `The tables of ${found.id} were written by a newer version of @svc/sdk.`, {
      why: `They have version ${found.version}; this SDK knows ${version}.`,
      state: 'Nothing was changed.',
      next: ['npm install @svc/sdk@latest'],
    });
  }
  return found.version === version;
}
