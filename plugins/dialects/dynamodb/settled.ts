import { setTimeout as wait } from 'node:timers/promises';
import type { TableDescription } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import type { Api } from './api.ts';
import { isMissing } from './errors.ts';

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;

/** What `DescribeTable` says; undefined where there is no table. `name` is the whole one. */
export async function describe(api: Api, name: string): Promise<TableDescription | undefined> {
  try {
    return (await api.send('DescribeTable', { TableName: name })).Table;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Told before each look, so that a lease stays or the waiting ends. */
export type Hold = () => Promise<void>;

/** The table and each of its indexes can be used. */
export function isReady(table: TableDescription | undefined): table is TableDescription {
  const indexes = table?.GlobalSecondaryIndexes ?? [];
  return table?.TableStatus === 'ACTIVE' && indexes.every(({ IndexStatus }) => IndexStatus === 'ACTIVE');
}

/**
 * The table once it and every index of it is ACTIVE, which the SDK's own waiters do not look at; undefined once it is
 * gone. An index may take hours to build: there is no deadline while DynamoDB says that it is at work.
 */
export async function settled(api: Api, name: string, hold: Hold): Promise<TableDescription | undefined> {
  let pause = FIRST_PAUSE_MS;
  for (;;) {
    await hold();
    const table = await describe(api, name);
    if (!table) return undefined;
    if (table.TableStatus === 'INACCESSIBLE_ENCRYPTION_CREDENTIALS' || /ARCHIV/.test(table.TableStatus ?? '')) {
      throw new SvcError('migration_failed', `The table "${name}" cannot be used.`, {
        why: `Its status is ${table.TableStatus}.`,
        next: ['Give DynamoDB the key that encrypts it back, or restore the table.'],
      });
    }
    if (isReady(table)) return table;
    await wait(pause);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

/** The table once nothing else is being done to it, or nothing once it is gone. Indexes of it may still be built. */
export async function present(api: Api, name: string, hold: Hold): Promise<TableDescription | undefined> {
  let pause = FIRST_PAUSE_MS;
  for (;;) {
    await hold();
    const table = await describe(api, name);
    if (table?.TableStatus !== 'DELETING') return table;
    await wait(pause);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}
