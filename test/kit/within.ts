/** Runs a body, and gives up after so many milliseconds: what it still does is then nobody's. */
export async function within(timeoutMs: number, what: string, body: () => unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not end within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([Promise.resolve().then(body), late]);
  } finally {
    clearTimeout(timer);
  }
}
