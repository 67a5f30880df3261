import { setTimeout as wait } from 'node:timers/promises';
import type { TableDescription, TimeToLiveDescription } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../../core/errors.ts';
import type { DynamoClient } from './client.ts';
import { ignoreNotFound } from './errors.ts';

const FIRST_POLL_MS = 20;
const MAX_POLL_MS = 2_000;

/** Undefined if the table does not exist. `name` is the physical name. */
export async function describeTable(client: DynamoClient, name: string): Promise<TableDescription | undefined> {
  const response = await client.send('DescribeTable', { TableName: name }).catch(ignoreNotFound);
  return response?.Table;
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
export function waitForTable(
  client: DynamoClient,
  name: string,
  assertLease: AssertLease,
): Promise<TableDescription | undefined> {
  return pollTable(client, name, assertLease, (table) => {
    if (table?.TableStatus === 'INACCESSIBLE_ENCRYPTION_CREDENTIALS' || /ARCHIV/.test(table?.TableStatus ?? '')) {
      throw new SvcError('migration_failed', `The table "${name}" cannot be used.`, {
        why: `Its status is ${table?.TableStatus}.`,
        next: ['Give DynamoDB access to the encryption key again, or restore the table.'],
      });
    }
    return !table || isReady(table);
  });
}

/** Waits while the table is being deleted. Returns undefined once it is gone; its indexes may still be building. */
export function waitWhileDeleting(client: DynamoClient, name: string, assertLease: AssertLease) {
  return pollTable(client, name, assertLease, (table) => table?.TableStatus !== 'DELETING');
}

async function pollTable(
  client: DynamoClient,
  name: string,
  assertLease: AssertLease,
  isDone: (table: TableDescription | undefined) => boolean,
): Promise<TableDescription | undefined> {
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(pause * 2, MAX_POLL_MS)) {
    await assertLease();
    const table = await describeTable(client, name);
    if (isDone(table)) return table;
    await wait(pause);
  }
}

export async function describeTimeToLive(
  client: DynamoClient,
  name: string,
): Promise<TimeToLiveDescription | undefined> {
  const response = await client.send('DescribeTimeToLive', { TableName: name }).catch(ignoreNotFound);
  return response?.TimeToLiveDescription;
}
