const VARIANT = "elt(1 + (ord(random_bytes(1)) & 3),'8','9','a','b')";
const VERSIONED = `insert(insert(hex(random_bytes(16)),13,1,'4'),17,1,${VARIANT})`;

/** A random UUID, version 4. The server's own uuid() is predictable: a time, a counter and the server's address. */
export const RANDOM_UUID = `(lower(insert(insert(insert(insert(${VERSIONED},9,0,'-'),14,0,'-'),19,0,'-'),24,0,'-')))`;

/** The default on a server without `random_bytes`. */
export const SERVER_UUID = '(uuid())';

/** Whether `autoGenerate` writes this default, or wrote it on an older server. */
export function isGeneratedUuid(expression: string): boolean {
  return normalizeSpelling(expression) === normalizeSpelling(RANDOM_UUID) || isServerUuid(expression);
}

export const isServerUuid = (expression: string): boolean =>
  normalizeSpelling(expression) === normalizeSpelling(SERVER_UUID);

/** Removes the differences between the spellings of the servers. */
const normalizeSpelling = (expression: string): string =>
  expression
    .replace(/_\w+'/g, "'")
    .replace(/[()\s]/g, '')
    .toLowerCase()
    .replace(/^lcase/, 'lower');
