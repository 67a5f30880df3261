import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Engine } from './engine.ts';
import { serversTempFolder } from './machine.ts';
import type { Source } from './source.ts';

/** The official image of compose.yaml, bound to the loopback address. */
export function fromDocker(engine: Engine, defaultPort: number, url: (port: number) => string): Source {
  return {
    from: 'Docker Compose',
    whyUnavailable: whyDockerUnavailable,
    prepare: async () => ({
      folder: serversTempFolder(),
      async start(launch) {
        const port = await launch.port(defaultPort);
        launch.report('starting a container (the image may be pulled first)');
        await launch.compose(engine, port);
        await launch.waitForAnswer(engine, url(port));
        return url(port);
      },
    }),
  };
}

let dockerCheck: { readonly problem: string | undefined } | undefined;

/** Why Docker Compose cannot be used on this machine, or undefined. Checked once per process. */
function whyDockerUnavailable(): string | undefined {
  dockerCheck ??= { problem: findDockerProblem() };
  return dockerCheck.problem;
}

function findDockerProblem(): string | undefined {
  const docker = (...args: readonly string[]) => spawnSync('docker', args, { encoding: 'utf8', timeout: 10_000 });
  const compose = docker('compose', 'version');
  if (compose.error) return 'Docker is not installed';
  if (compose.status !== 0) return 'Docker has no Compose';
  const engine = docker('version', '--format', '{{.Server.Version}}');
  if (engine.status !== 0) return 'no Docker engine answers';
  return undefined;
}

/** The leading arguments of every `docker compose` call for the services of compose.yaml. */
export const COMPOSE = ['compose', '--file', fileURLToPath(new URL('compose.yaml', import.meta.url))] as const;
