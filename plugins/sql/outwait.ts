/** Sends a text again that another session stood in the way of: `again` says so, and that nothing of it was done. */
export async function outwait<T>(
  send: () => Promise<T>,
  again: (error: unknown) => boolean,
  retries: number,
): Promise<T> {
  for (let left = retries; ; left -= 1) {
    try {
      return await send();
    } catch (error) {
      if (left === 0 || !again(error)) throw error;
    }
  }
}
