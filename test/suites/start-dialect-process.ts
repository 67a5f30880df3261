import { once } from 'node:events';
import type { Dialect } from '../../core/dialect.ts';
import type { Answer, Job, Jobs } from './dialect-process.ts';
import type { DialectUnderTest } from './dialect-under-test.ts';
import { moduleUrl, startScript } from './start-script.ts';

type Arguments<J extends keyof Jobs> = Parameters<Jobs[J]> extends [Dialect, ...infer Rest] ? Rest : never;

/** Another process with the dialect. */
export interface DialectProcess {
  /** Runs a job. Rejects with its error, or if the process ends first. */
  run<J extends keyof Jobs>(name: J, ...args: Arguments<J>): Promise<Awaited<ReturnType<Jobs[J]>>>;
  /** Whether the process has ended by SIGKILL. */
  wasKilled(): boolean;
  /** Kills the process, which runs no cleanup, and waits for its end. */
  kill(): Promise<void>;
}

/** `environment` is added to that of this process. */
export function startDialectProcess(
  { module, dialect }: DialectUnderTest,
  environment: NodeJS.ProcessEnv = {},
): DialectProcess {
  const { child, ended, errors, kill } = startScript('dialect-process', [moduleUrl(module), dialect.name], {
    environment,
  });
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  return {
    async run(name, ...args) {
      const answered = once(child, 'message') as Promise<[Answer]>;
      const job: Job = { name, args };
      // A dead process is reported below.
      if (!hasEnded()) child.send(job, () => {});
      const [answer] = await Promise.race([answered, ended.then(() => [undefined])]);
      if (answer === undefined) {
        throw new Error(`The process ended (${child.signalCode ?? child.exitCode}) during "${name}". ${errors()}`);
      }
      if ('error' in answer) throw new Error(`In another process, "${name}" failed: ${answer.error}`);
      return answer.value as never;
    },
    wasKilled: () => child.signalCode === 'SIGKILL',
    kill,
  };
}
