/**
 * A reader that went away (`svc … | head`) is no error: what is still written is dropped and the command finishes its
 * work. Any other failure of stdout (a full disk) is told at the end.
 */
export function guardStreams(): { failure(): Promise<Error | undefined> } {
  let failure: Error | undefined;
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE' && stream === process.stdout) failure ??= error;
    });
  }
  return {
    async failure() {
      for (const stream of [process.stdout, process.stderr]) {
        await new Promise<void>((written) => stream.write('', () => written()));
      }
      return failure;
    },
  };
}
