import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import { CLOCK, ELAPSED, type RecordWrite } from '../../../core/records.ts';
import { nameOf, reasonsOf } from './errors.ts';
import type { Work } from './move.ts';
import { insertion, replacement } from './record-change.ts';
import { filled, tooLong } from './record-item.ts';

/** A transaction has at most 100 parts, one of which is the fence, and 4 MB. */
export const MOST_PARTS = 99;
const MOST_CHARACTERS = 2_000_000;
/** So few have not that much, whatever they are: an item has 400 KB at most. */
const FEW = 9;

/**
 * The writes of a segment, which lose together once the epoch is over. More of them than a transaction takes, as
 * where hundreds of migrations are taken over at once, go in several: each of those is as good as the first alone.
 * `others` go with the first of them.
 */
export async function writeRecords(
  { api, state, epoch }: Work,
  writes: readonly RecordWrite[],
  began: number,
  others: readonly TransactWriteItem[] = [],
): Promise<Record<string, Date | number>[]> {
  const moment = { now: api.clock.now(), elapsed: Math.round(performance.now() - began) };
  const parts = writes.map(({ definition, record, version }): TransactWriteItem => {
    const table = api.table(definition.collection);
    const values = filled(record, moment);
    return version === undefined
      ? insertion(table, definition, values)
      : replacement(table, definition, String(values[definition.key]), version, values);
  });
  for (const packet of packets([...others, ...parts])) {
    try {
      await state.fenced(epoch, packet);
    } catch (error) {
      if (
        nameOf(error) === 'TransactionCanceledException' &&
        reasonsOf(error).some(({ Code }) => Code === 'ConditionalCheckFailed')
      ) {
        throw notAsRead(error);
      }
      throw tooLong(error, writes[0]?.definition.collection ?? '');
    }
  }
  return writes.map(({ record }) => {
    const values: Record<string, Date | number> = {};
    for (const [name, value] of Object.entries(record)) {
      if (value === CLOCK) values[name] = new Date(moment.now);
      if (value === ELAPSED) values[name] = moment.elapsed;
    }
    return values;
  });
}

function* packets(parts: readonly TransactWriteItem[]): Generator<readonly TransactWriteItem[]> {
  if (parts.length <= FEW) {
    if (parts.length > 0) yield parts;
    return;
  }
  let packet: TransactWriteItem[] = [];
  let length = 0;
  for (const part of parts) {
    const characters = JSON.stringify(part).length;
    if (packet.length === MOST_PARTS || (packet.length > 0 && length + characters > MOST_CHARACTERS)) {
      yield packet;
      packet = [];
      length = 0;
    }
    packet.push(part);
    length += characters;
  }
  if (packet.length > 0) yield packet;
}

function notAsRead(cause: unknown): SvcError {
  return new SvcError('lock_lost', 'The migration lock was lost: another process has moved on.', {
    why: 'The record to write is not the one that was read under the lock.',
    next: ['Run the command again.'],
    cause,
  });
}
