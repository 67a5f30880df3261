import { isDeepStrictEqual } from 'node:util';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { collectionFrom, entryWrite, readEntry } from '../catalog/registry.ts';
import type { DynamoStep } from '../compile/step.ts';
import { addedFieldCheck, assertItems, assertMovable, moveField } from '../data/move.ts';
import { moveProgressId, progressRemoval } from '../data/resumable-scan.ts';
import type { CreatePreflight } from './create-preflight.ts';
import { createTable } from './create-table.ts';
import { dropTable } from './drop-table.ts';
import { createIndex, dropIndex } from './indexes.ts';
import { runRawRequest } from './raw-request.ts';
import { type RunContext, requireTable } from './run-context.ts';

/** Runs a step. Returns the registry writes that the next fenced transaction must include. */
export async function runStep(
  context: RunContext,
  step: DynamoStep,
  preflight: CreatePreflight | undefined,
): Promise<readonly TransactWriteItem[]> {
  await context.assertLease();
  switch (step.kind) {
    case 'create':
      if (!preflight) throw new Error(`${step.table} is created without a preflight`);
      return createTable(context, step.table, step.definition, preflight);
    case 'drop':
      return dropTable(context, step.table);
    case 'register':
      return registerTable(context, step);
    case 'createIndex':
      return createIndex(context, step.table, step.index, step.definition);
    case 'dropIndex':
      return dropIndex(context, step.table, step.index, step.definition);
    case 'check':
      await assertMovable(context, step.table, step.move);
      return [];
    case 'move':
      context.onChange?.();
      await moveField(context, step.table, step.move);
      return [];
    case 'raw':
      await runRawRequest(context, step);
      return [];
  }
}

async function registerTable(
  context: RunContext,
  { table, definition, empty, added }: DynamoStep & { kind: 'register' },
): Promise<TransactWriteItem[]> {
  const { client, state } = context;
  const found = await requireTable(context, table);
  // If an earlier attempt registered the table, items written since then must not fail the step.
  const isRegistered = async () => {
    const registered = (await readEntry(state, table))?.collection;
    return registered !== undefined && isDeepStrictEqual(registered, collectionFrom(definition));
  };
  if (empty !== undefined) {
    const { Count = 0 } = (await isRegistered())
      ? {}
      : await client.send('Scan', { TableName: found.name, Limit: 1, Select: 'COUNT', ConsistentRead: true });
    if (Count > 0) {
      throw new SvcError('data_violates', `The items of the table "${table}" would have no "${empty}".`, {
        why: 'The field is required and has no default.',
        state: 'Nothing was changed.',
        next: ['Give the field a default, or add it as optional, fill it, and then make it required.'],
      });
    }
  }
  if (added !== undefined) {
    await assertItems(context, table, found, addedFieldCheck(added)).catch(async (error) => {
      if (!isSvcError(error) || error.code !== 'data_violates' || !(await isRegistered())) throw error;
    });
  }
  return [entryWrite(state, table, definition), progressRemoval(state, moveProgressId(table))];
}
