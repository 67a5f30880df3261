const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** The first signal asks the command to stop where it is safe; the second one ends the process. */
export function onInterrupt(notice: (signal: string) => void): { readonly signal: AbortSignal; stop(): void } {
  const controller = new AbortController();
  const listen = (signal: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort();
    notice(signal);
  };
  for (const signal of SIGNALS) process.on(signal, listen);
  return {
    signal: controller.signal,
    stop: () => {
      for (const signal of SIGNALS) process.off(signal, listen);
    },
  };
}
