import { setTimeout as wait } from 'node:timers/promises';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import { isMissing, nameOf } from './errors.ts';
import type { Work } from './move.ts';
import { forgotten, moveId } from './progress.ts';
import { entryRemoval } from './registry.ts';
import { settled } from './settled.ts';

const AGAIN_MS = 100;

/**
 * Waits for whatever is being done to the table, which AWS wants, deletes it, and waits until it is gone. Gives what takes
 * it out of the registry.
 */
export async function dropTable(work: Work, table: string): Promise<TransactWriteItem[]> {
  const { api, state, hold } = work;
  const name = api.table(table);
  for (let found = await settled(api, name, hold); found; found = await settled(api, name, hold)) {
    if (found.DeletionProtectionEnabled) {
      throw new SvcError('permission_denied', `The table "${table}" is protected against deletion.`, {
        why: 'Its DeletionProtectionEnabled is true.',
        next: [
          `Take the protection away first: {"UpdateTable": {"TableName": "${table}", "DeletionProtectionEnabled": false}}`,
        ],
      });
    }
    try {
      await api.attempt('DeleteTable', { TableName: name });
    } catch (error) {
      // Gone already, or something began in between.
      if (!isMissing(error) && nameOf(error) !== 'ResourceInUseException') throw error;
    }
    await wait(AGAIN_MS);
  }
  return [entryRemoval(state, table), forgotten(state, moveId(table))];
}
