/** Milliseconds in which a whole body must arrive. */
const BODY_TIMEOUT_MS = 10_000;
/** What is read of a body that is too large, and forgotten: a client that still sends when its connection is closed loses the answer. */
const MAX_SKIPPED_BYTES = 2 * 1024 * 1024;

/** Reads a body of at most `maxBytes`. Returns `too large` for a longer one, and `too slow` for one that is not complete in time. */
export async function readBody(
  request: Pick<Request, 'headers' | 'body'>,
  maxBytes: number,
): Promise<Uint8Array | 'too large' | 'too slow'> {
  const declared = Number(request.headers.get('content-length') ?? 0);
  if (declared > maxBytes) return 'too large';
  if (!request.body) return new Uint8Array();
  const reader = request.body.getReader();
  const cancel = () => void reader.cancel().catch(() => undefined);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'too slow'>((resolve) => {
    timer = setTimeout(() => resolve('too slow'), BODY_TIMEOUT_MS);
  });
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const read = await Promise.race([reader.read(), late]);
      if (read === 'too slow') {
        cancel();
        return size > maxBytes ? 'too large' : read;
      }
      if (read.done) return size > maxBytes ? 'too large' : Buffer.concat(parts);
      size += read.value.byteLength;
      if (size > maxBytes + MAX_SKIPPED_BYTES) {
        cancel();
        return 'too large';
      }
      if (size <= maxBytes) parts.push(read.value);
    }
  } finally {
    clearTimeout(timer);
  }
}
