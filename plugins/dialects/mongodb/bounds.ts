/** Milliseconds for records, the registry and the lease; what moves data or builds an index takes as long as it takes. */
const PATIENCE_MS = 10_000;

/** Of an operation: without it a linearizable read waits for ever where a majority of the members is gone. */
export const BOUNDED = { maxTimeMS: PATIENCE_MS } as const;

/** Of a collection or a transaction: a write would wait likewise. One that was given up may have been done all the same. */
export const BY_MAJORITY = { writeConcern: { w: 'majority', wtimeoutMS: PATIENCE_MS } } as const;
