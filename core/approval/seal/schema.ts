import type { RecordDefinition } from '../../records.ts';
import type { Seal } from './seal.ts';

/** Version of the tables in this file, which a store has once it is sealed. */
export const SEALS_VERSION = 1;

export interface SealRow {
  readonly sealId: string;
  /** `new`: not every sink that cannot say what it has was sent the seal. */
  readonly state: 'new' | 'sent';
  readonly body: Seal;
}

export const seals: RecordDefinition<SealRow> = {
  collection: '_svc_approval_seals',
  key: 'sealId',
  columns: { sealId: { type: 'string' }, state: { type: 'string' }, body: { type: 'json' } },
  indexes: [{ name: 'byState', equals: ['state'], sort: 'sealId' }],
};

/** A request that may get more events: the next search for new ones reads it. */
export interface OpenRow {
  readonly requestId: string;
  readonly state: 'open';
  /** When a process announced an event, or the search that added it began. */
  readonly at: Date;
  /** The number of a seal that covers what earlier searches found; 0 if none does. */
  readonly seal: number;
}

export const openRequests: RecordDefinition<OpenRow> = {
  collection: '_svc_approval_open',
  key: 'requestId',
  columns: {
    requestId: { type: 'string' },
    state: { type: 'string' },
    at: { type: 'timestamp' },
    seal: { type: 'integer' },
  },
  indexes: [{ name: 'byState', equals: ['state'], sort: 'requestId', sharded: true }],
};
