import type { RecordDefinition } from '../../core/records.ts';

/** A record with a column of each type. */
export interface Thing {
  readonly id: string;
  readonly kind: string;
  readonly size: number;
  readonly took: number;
  readonly big: number;
  readonly done: boolean;
  readonly expires: Date | null;
  readonly body: object | null;
}

export const things: RecordDefinition<Thing> = {
  collection: '_svc_things',
  key: 'id',
  columns: {
    id: { type: 'string' },
    kind: { type: 'string' },
    size: { type: 'integer' },
    took: { type: 'double' },
    big: { type: 'bigint' },
    done: { type: 'boolean' },
    expires: { type: 'timestamp', nullable: true },
    body: { type: 'json', nullable: true },
  },
  indexes: [{ name: 'bySize', equals: ['kind'], sort: 'size' }],
};

export const thing = (id: string, size: number, kind = 'k'): Thing => ({
  id,
  kind,
  size,
  took: 1.5,
  big: 2 ** 40,
  done: true,
  expires: null,
  body: { a: [1, "it's", null] },
});
