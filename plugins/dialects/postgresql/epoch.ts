import { createHash } from 'node:crypto';
import { quote } from './grammar.ts';

/** One row: how often the migration lock was taken. Who holds an older number has lost it. */
const TABLE = '_svc_lock';

export const epochTable = (schema: string): string => `${schema}${quote(TABLE)}`;

/** Locks the row in share mode: the next holder cannot move on before this transaction is over. */
export function epochStands(schema: string, epoch: number): string {
  return `EXISTS (SELECT 1 FROM ${epochTable(schema)} WHERE epoch = ${epoch} FOR SHARE)`;
}

/** The value, or NULL for a column that cannot be null once the epoch is over. */
export function whileEpochStands(schema: string, epoch: number, value: string): string {
  return `(SELECT ${value} FROM ${epochTable(schema)} WHERE epoch = ${epoch} FOR SHARE)`;
}

/** A 64-bit key: the same in every process for one schema, unlike that of any other program. */
export function lockKey(schema: string): string {
  return createHash('sha256').update(`svc migrations ${schema}`).digest().readBigInt64BE(0).toString();
}
