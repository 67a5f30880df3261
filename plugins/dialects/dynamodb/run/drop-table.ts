import { setTimeout as wait } from 'node:timers/promises';
import type { TableDescription, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../../core/errors.ts';
import { entryRemoval } from '../catalog/registry.ts';
import type { DynamoSegment } from '../compile/step.ts';
import { errorName, isNotFound } from '../connection/errors.ts';
import { describeTable, waitForTable } from '../connection/wait-for-table.ts';
import { moveProgressId, progressRemoval } from '../data/resumable-scan.ts';
import { type RunContext, sendChange } from './run-context.ts';

const RETRY_MS = 100;

/**
 * Deletes a table and waits until it is gone. Waits first until it is ACTIVE, as DeleteTable requires. Returns the
 * registry writes to commit next.
 */
export async function dropTable(context: RunContext, table: string): Promise<TransactWriteItem[]> {
  const { client, state, assertLease } = context;
  const name = client.table(table);
  for (
    let found = await waitForTable(client, name, assertLease);
    found;
    found = await waitForTable(client, name, assertLease)
  ) {
    assertUnprotected(table, found);
    try {
      await sendChange(context, 'DeleteTable', { TableName: name });
    } catch (error) {
      // Already gone, or changed by another client.
      if (!isNotFound(error) && errorName(error) !== 'ResourceInUseException') throw error;
    }
    await wait(RETRY_MS);
  }
  return [entryRemoval(state, table), progressRemoval(state, moveProgressId(table))];
}

/**
 * Throws `permission_denied` if the steps drop a protected table, before the first of them runs. A raw request may end the
 * protection: what is dropped after one is checked in its turn.
 */
export async function assertDroppable({ client }: RunContext, segments: readonly DynamoSegment[]): Promise<void> {
  for (const { run } of segments.flatMap(({ statements }) => statements)) {
    if (run.kind === 'raw') return;
    if (run.kind === 'drop') assertUnprotected(run.table, await describeTable(client, client.table(run.table)));
  }
}

function assertUnprotected(table: string, found: TableDescription | undefined): void {
  if (!found?.DeletionProtectionEnabled) return;
  throw new SvcError('permission_denied', `The table "${table}" is protected against deletion.`, {
    why: 'Its DeletionProtectionEnabled is true.',
    next: [
      `Remove the protection first: {"UpdateTable": {"TableName": "${table}", "DeletionProtectionEnabled": false}}`,
    ],
  });
}
