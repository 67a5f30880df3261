import type { Consumption, Report } from './broker-process.ts';
import { moduleUrl, startScript } from './start-script.ts';

/** Consumes a queue in another process. Resolves to a function that stops, once the process has begun. */
export async function consumeInProcess(
  { module, type, ...consumption }: Consumption & { readonly module: URL | string; readonly type: string },
  onBody: (body: Uint8Array) => void,
): Promise<() => Promise<void>> {
  const { child, ended, errors, kill } = startScript('broker-process', [moduleUrl(module), type]);
  child.on('message', (report: Report) => {
    if (typeof report === 'object' && 'body' in report) onBody(report.body);
  });
  const ask = async (message: Consumption) => {
    const answered = new Promise<Report>((resolve) => {
      const onReport = (report: Report) => {
        if (typeof report === 'object' && 'body' in report) return;
        child.off('message', onReport);
        resolve(report);
      };
      child.on('message', onReport);
    });
    // A process that has ended is reported below.
    child.send(message, () => {});
    const report = await Promise.race([answered, ended]);
    if (report === undefined) throw new Error(`The process with the broker ended (${child.exitCode}). ${errors()}`);
    if (typeof report === 'object' && 'error' in report) throw new Error(`In another process: ${report.error}`);
  };
  const askOrKill = (message: Consumption) =>
    ask(message).catch(async (error: unknown) => {
      await kill();
      throw error;
    });
  await askOrKill(consumption);
  return async () => {
    await askOrKill(consumption);
    await ended;
  };
}
