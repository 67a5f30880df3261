import { Kernel } from '../../core/kernel.ts';
import { applyPlugin } from '../../core/plugin.ts';
import { describeTestError } from './suite.ts';

/**
 * A process of its own with a broker: `node broker-process.ts <URL of the plugin's module> <type of the broker>`. It consumes the
 * queue that it is sent, reports the bodies, and closes the broker with the second message.
 */

/** What the process is sent first. */
export interface Consumption {
  readonly options: Readonly<Record<string, unknown>>;
  readonly queue: string;
}

export type Report = 'started' | 'closed' | { readonly body: Uint8Array } | { readonly error: string };

const report = (answer: Report, onSent = () => {}): void => void process.send?.(answer, onSent);

async function consume({ options, queue }: Consumption): Promise<() => Promise<void>> {
  const [module = '', type = ''] = process.argv.slice(2);
  const kernel = new Kernel();
  applyPlugin(kernel, (await import(module)).default, module);
  const broker = kernel.brokers.get(type)(options);
  const stop = await broker.consume?.(queue, async (body) => report({ body }));
  return async () => {
    await stop?.();
    await broker.close();
  };
}

/** Reports the error of a step, and ends the process after it. */
const reported =
  <Args extends unknown[]>(step: (...args: Args) => Promise<void>) =>
  (...args: Args) =>
    step(...args).catch((error: unknown) => report({ error: describeTestError(error) }, () => process.exit()));

process.once(
  'message',
  reported(async (consumption: Consumption) => {
    const close = await consume(consumption);
    process.once(
      'message',
      reported(async () => {
        await close();
        report('closed', () => process.exit());
      }),
    );
    report('started');
  }),
);
process.on('disconnect', () => process.exit());
