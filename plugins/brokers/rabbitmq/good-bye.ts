const PATIENCE_MS = 2_000;

/** Waits for an answer to a good-bye, but not for ever: a server that is gone never gives one. */
export async function goodBye(said: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, PATIENCE_MS);
  });
  await Promise.race([said.catch(() => undefined), late]);
  clearTimeout(timer);
}
