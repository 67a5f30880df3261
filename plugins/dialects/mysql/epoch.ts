/** One row: how often the migration lock was taken. Who holds an older number has lost it. */
export const EPOCH_TABLE = '`_svc_lock`';

/** In a write it locks the row in share mode: the next holder cannot move on before this transaction is over. */
export function epochStands(epoch: number): string {
  return `EXISTS (SELECT 1 FROM ${EPOCH_TABLE} WHERE epoch = ${epoch})`;
}

/** The value, or NULL for a column that cannot be null once the epoch is over. */
export function whileEpochStands(epoch: number, value: string): string {
  return `(SELECT ${value} FROM ${EPOCH_TABLE} WHERE epoch = ${epoch})`;
}
