import { createHash } from 'node:crypto';
import { tryParseJson } from '../../../../core/json.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { quoteIdentifier } from '../compile/names.ts';

/** That a record was written. */
export interface Notice {
  readonly collection: string;
  readonly key: string;
}

/** A payload has less than 8,000 bytes. A key has at most 255 characters, of up to six bytes each in JSON. */
const MAX_PAYLOAD_BYTES = 6_000;

/** A channel name within PostgreSQL's limit of 63 bytes, for a schema of any name. */
export function notifyChannel(schema: string, topic: string): string {
  return `svc_${createHash('sha256').update(`${schema}${topic}`).digest('hex').slice(0, 32)}`;
}

/** The statements that notify those who watch the collections: as few as have room for all keys. */
export function notifySql(schema: string, notices: readonly Notice[]): string[] {
  const collections = new Set(notices.map(({ collection }) => collection));
  return [...collections].flatMap((collection) => {
    const channel = quoteIdentifier(notifyChannel(schema, collection));
    const keys = notices.filter((one) => one.collection === collection).map(({ key }) => key);
    return payloadsOf(keys).map((payload) => `NOTIFY ${channel}, ${quoteLiteral(payload)}`);
  });
}

/** Calls `notify` with each key of a payload, or once without one if somebody else has sent it: any record may have changed. */
export function notifyOf(payload: string, notify: (key?: string) => void): void {
  const keys = tryParseJson(payload);
  if (!Array.isArray(keys)) notify();
  else for (const key of keys) notify(String(key));
}

function payloadsOf(keys: readonly string[]): string[] {
  const groups: string[][] = [];
  let left = 0;
  for (const key of new Set(keys)) {
    const bytes = Buffer.byteLength(JSON.stringify(key)) + 1;
    if (bytes > left) {
      groups.push([]);
      left = MAX_PAYLOAD_BYTES;
    }
    groups.at(-1)?.push(key);
    left -= bytes;
  }
  return groups.map((group) => JSON.stringify(group));
}
