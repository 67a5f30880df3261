import { isDeepStrictEqual } from 'node:util';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { isSvcError, SvcError } from '../../../core/errors.ts';
import { createTable, type Outset } from './create.ts';
import { collectionFrom } from './definition.ts';
import { dropTable } from './drop.ts';
import { createIndex, dropIndex } from './index-steps.ts';
import { checkItems, moveItems, refuseItems, tableFor, type Work } from './move.ts';
import { testedAs } from './move-plan.ts';
import { forgotten, moveId } from './progress.ts';
import { inputOf } from './raw.ts';
import { entryOf, entryWrite } from './registry.ts';
import { settled } from './settled.ts';
import type { Step } from './step.ts';

/** Does what a statement says. Gives what the registry says once it is done, for the next fenced write to carry. */
export async function perform(
  work: Work,
  step: Step,
  outset: Outset | undefined,
): Promise<readonly TransactWriteItem[]> {
  await work.hold();
  switch (step.do) {
    case 'create':
      if (!outset) throw new Error(`nobody looked for ${step.table} before it was created`);
      return createTable(work, step.table, step.definition, outset);
    case 'drop':
      return dropTable(work, step.table);
    case 'describe':
      return describeTable(work, step);
    case 'createIndex':
      return createIndex(work, step.table, step.index, step.definition);
    case 'dropIndex':
      return dropIndex(work, step.table, step.index, step.definition);
    case 'check':
      await checkItems(work, step.table, step.move);
      return [];
    case 'move':
      await moveItems(work, step.table, step.move);
      return [];
    case 'raw':
      await request(work, step);
      return [];
  }
}

async function describeTable(
  work: Work,
  { table, definition, empty, added }: Step & { do: 'describe' },
): Promise<TransactWriteItem[]> {
  const { api, state } = work;
  const found = await tableFor({ api }, table);
  // Said by an attempt before this one: what has come since then is no reason to refuse it.
  const isSaid = async () => {
    const known = (await entryOf(state, table))?.collection;
    return known !== undefined && isDeepStrictEqual(known, collectionFrom(definition));
  };
  if (empty !== undefined) {
    const { Count = 0 } = (await isSaid())
      ? {}
      : await api.send('Scan', { TableName: found.name, Limit: 1, Select: 'COUNT', ConsistentRead: true });
    if (Count > 0) {
      throw new SvcError('data_violates', `The table "${table}" has items, which would have no "${empty}".`, {
        why: 'The field is required and has no default.',
        state: 'Nothing was changed.',
        next: ['Give the field a default, or add it without required, fill it, and require it then.'],
      });
    }
  }
  if (added !== undefined) {
    await refuseItems(work, table, found, testedAs(added)).catch(async (error) => {
      if (!isSvcError(error) || error.code !== 'data_violates' || !(await isSaid())) throw error;
    });
  }
  return [entryWrite(state, table, definition), forgotten(state, moveId(table))];
}

const DDL = new Set(['CreateTable', 'UpdateTable', 'DeleteTable']);

/** Sent once, in the user's words: an answer that is lost leaves the `check` or a person to say what became of it. */
async function request({ api, hold }: Work, { action, input }: Step & { do: 'raw' }): Promise<void> {
  const given = inputOf({ action, input }, (table) => api.table(table));
  await api.foreign(action, given);
  if (DDL.has(action) && typeof given.TableName === 'string') await settled(api, given.TableName, hold);
}
