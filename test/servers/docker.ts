import { spawnSync } from 'node:child_process';
import type { Engine } from './engine.ts';
import type { Source } from './source.ts';
import { temporary } from './temporary.ts';

/** The official image of compose.yaml, its port on the loopback address only. */
export function fromDocker(engine: Engine, usual: number, url: (port: number) => string): Source {
  return {
    from: 'Docker Compose',
    missing: dockerMissing,
    prepare: async () => ({
      folder: temporary(),
      async start(launch) {
        const port = await launch.port(usual);
        launch.tell('starts a container, which may have to be fetched first');
        await launch.compose(engine, port);
        await launch.answers(engine, url(port));
        return url(port);
      },
    }),
  };
}

let asked: { readonly missing: string | undefined } | undefined;

/** Why Docker Compose cannot be used here, or nothing. */
function dockerMissing(): string | undefined {
  asked ??= { missing: ask() };
  return asked.missing;
}

function ask(): string | undefined {
  const said = (...args: readonly string[]) => spawnSync('docker', args, { encoding: 'utf8', timeout: 10_000 });
  const compose = said('compose', 'version');
  if (compose.error) return 'Docker is not installed';
  if (compose.status !== 0) return 'Docker has no Compose';
  const engine = said('version', '--format', '{{.Server.Version}}');
  if (engine.status !== 0) return 'no Docker engine answers';
  return undefined;
}
