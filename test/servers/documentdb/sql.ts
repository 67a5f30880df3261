import type { Document } from 'bson';
import type { ClientBase } from 'pg';
import { decode, encode } from './wire.ts';

const PREFIX = 'BSONHEX';
const BSON = 'documentdb_core.bson';

export const hex = (document: Document): string => PREFIX + encode(document).toString('hex');

export const bytesOf = (text: string): Buffer => Buffer.from(text.slice(PREFIX.length), 'hex');

/** A parameter that is BSON. */
export const bson = (at: number): string => `$${at}::text::${BSON}`;

/** The document that a function of the engine returns. */
export async function document(client: ClientBase, call: string, values: readonly unknown[]): Promise<Document> {
  const row = await first(client, `SELECT ${call}::text AS found`, values);
  return decode(bytesOf(String(row.found)));
}

export async function first(
  client: ClientBase,
  text: string,
  values: readonly unknown[],
): Promise<Readonly<Record<string, unknown>>> {
  const { rows } = await client.query(text, [...values]);
  const [row] = rows as Readonly<Record<string, unknown>>[];
  if (!row) throw new Error(`no row from ${text}`);
  return row;
}
