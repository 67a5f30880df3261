import { setTimeout as wait } from 'node:timers/promises';
import type { TableDescription, TimeToLiveDescription } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../../core/errors.ts';
import type { Api } from './api.ts';
import { isNotFound } from './errors.ts';

const FIRST_POLL_MS = 20;
const MAX_POLL_MS = 2_000;

/** Undefined if the table does not exist. `name` is the physical name. */
export async function describeTable(api: Api, name: string): Promise<TableDescription | undefined> {
  try {
    return (await api.send('DescribeTable', { TableName: name })).Table;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Throws `lock_lost` if the migration lock is no longer held. Called before each poll of a wait. */
export type AssertLease = () => Promise<void>;

/** Whether the table and all its indexes are usable. */
export function isReady(table: TableDescription | undefined): table is TableDescription {
  const indexes = table?.GlobalSecondaryIndexes ?? [];
  return table?.TableStatus === 'ACTIVE' && indexes.every(({ IndexStatus }) => IndexStatus === 'ACTIVE');
}

/**
 * Waits until the table and all its indexes are ACTIVE; the SDK's own waiters ignore indexes. Returns undefined once the
 * table is gone. There is no deadline, because an index can take hours to build.
 */
export async function waitForTable(
  api: Api,
  name: string,
  assertLease: AssertLease,
): Promise<TableDescription | undefined> {
  let pause = FIRST_POLL_MS;
  for (;;) {
    await assertLease();
    const table = await describeTable(api, name);
    if (!table) return undefined;
    if (table.TableStatus === 'INACCESSIBLE_ENCRYPTION_CREDENTIALS' || /ARCHIV/.test(table.TableStatus ?? '')) {
      throw new SvcError('migration_failed', `The table "${name}" cannot be used.`, {
        why: `Its status is ${table.TableStatus}.`,
        next: ['Give DynamoDB access to the encryption key again, or restore the table.'],
      });
    }
    if (isReady(table)) return table;
    await wait(pause);
    pause = Math.min(pause * 2, MAX_POLL_MS);
  }
}

/** Waits while the table is being deleted. Returns undefined once it is gone; its indexes may still be building. */
export async function waitWhileDeleting(
  api: Api,
  name: string,
  assertLease: AssertLease,
): Promise<TableDescription | undefined> {
  let pause = FIRST_POLL_MS;
  for (;;) {
    await assertLease();
    const table = await describeTable(api, name);
    if (table?.TableStatus !== 'DELETING') return table;
    await wait(pause);
    pause = Math.min(pause * 2, MAX_POLL_MS);
  }
}

export async function describeTimeToLive(api: Api, name: string): Promise<TimeToLiveDescription | undefined> {
  try {
    return (await api.send('DescribeTimeToLive', { TableName: name })).TimeToLiveDescription;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
