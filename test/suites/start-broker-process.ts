import { once } from 'node:events';
import type { Consumption, Report } from './broker-process.ts';
import { forkScript, moduleUrl } from './start-dialect-process.ts';

/** The process itself, next to this file: TypeScript in this repository, JavaScript in the package. */
const script = import.meta.url.endsWith('.ts')
  ? new URL('./broker-process.ts', import.meta.url)
  : new URL('./broker-process.js', import.meta.url);

/** Consumes a queue in another process. Resolves to a function that stops, once the process has begun. */
export async function consumeInProcess(
  { module, type, ...consumption }: Consumption & { readonly module: URL | string; readonly type: string },
  onBody: (body: Uint8Array) => void,
): Promise<() => Promise<void>> {
  const child = forkScript(script, [moduleUrl(module), type], 'ignore');
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  const ended = once(child, 'close');
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
    const report = await Promise.race([answered, ended.then(() => undefined)]);
    if (report === undefined)
      throw new Error(`The process with the broker ended (${child.exitCode}). ${errors.trim()}`);
    if (typeof report === 'object' && 'error' in report) throw new Error(`In another process: ${report.error}`);
  };
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
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
