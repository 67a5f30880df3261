import * as assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { waitUntil } from '../suites/wait-until.ts';
import { type CommandResult, cleanEnv, collectOutput } from './cli.ts';

/** A project in a folder where the packed package and plugins are installed, used through the installed command line. */
export interface InstalledProject {
  /** Runs a command with `--json`; its result. Fails if the command does. */
  svc(...args: readonly string[]): Promise<Record<string, unknown>>;
  /** Runs the command, or a script of the project, until it ends. */
  run(program: Program, ...args: readonly string[]): Promise<CommandResult>;
  /** Starts it, and waits until a line of its output satisfies `until`. */
  start(program: Program, args: readonly string[], until: (line: string) => boolean): Promise<Started>;
}

type Program = 'svc' | `${string}.mjs`;

export interface Started {
  /** The line that `until` found. */
  readonly line: string;
  readonly ended: Promise<CommandResult>;
  stop(): Promise<void>;
}

/** Objects are written as JSON. */
export function installedProject(
  workspace: string,
  name: string,
  files: Readonly<Record<string, string | object>>,
): InstalledProject {
  const root = join(workspace, name);
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), typeof content === 'string' ? content : JSON.stringify(content, null, 2));
  }
  const command = join(workspace, 'node_modules', '.bin', 'svc');
  const spawned = (program: Program, args: readonly string[]) => {
    const [file, ...before] = program === 'svc' ? [command] : [process.execPath, program];
    return spawn(file, [...before, ...args], { cwd: root, env: cleanEnv(), stdio: ['ignore', 'pipe', 'pipe'] });
  };
  const run: InstalledProject['run'] = (program, ...args) => collectOutput(spawned(program, args)).ended;
  return {
    run,
    async svc(...args) {
      const { status, stdout, stderr } = await run('svc', ...args, '--json');
      assert.equal(status, 0, `svc ${args.join(' ')}\n${stdout}${stderr}`);
      return JSON.parse(stdout);
    },
    async start(program, args, until) {
      const child = spawned(program, args);
      const { ended, stdout } = collectOutput(child);
      ended.catch(() => undefined);
      let line: string | undefined;
      await waitUntil(() => {
        line = stdout().split('\n').slice(0, -1).find(until);
        return line !== undefined || child.exitCode !== null;
      }, `${program} printed no line that was waited for`);
      if (line === undefined) assert.fail(`${program} ended: ${JSON.stringify(await ended)}`);
      const stop = async () => {
        child.kill();
        await ended;
      };
      return { line, ended, stop };
    },
  };
}
