/** Bytes of a body that is read. */
export const BODY_LIMIT = 64 * 1024;

/** The text of a request's body; undefined where it is longer than a decision can be. Reads no further than that. */
export async function readBody(request: Request): Promise<string | undefined> {
  const announced = Number(request.headers.get('content-length') ?? 0);
  if (announced > BODY_LIMIT) return undefined;
  if (!request.body) return '';
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = request.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > BODY_LIMIT) {
      await reader.cancel().catch(() => undefined);
      return undefined;
    }
    parts.push(value);
  }
  return Buffer.concat(parts).toString('utf8');
}
