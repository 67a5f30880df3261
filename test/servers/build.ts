import { spawn } from 'node:child_process';
import { basename } from 'node:path';

/** Lines of a failed program's output that its error repeats. */
const LAST_LINES = 6;

/** Runs a program to its end; throws with the last of what it said. */
export function build(
  file: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; uid?: number; gid?: number } = {},
): Promise<string> {
  return new Promise((settle, fail) => {
    const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const take = (text: string): void => {
      output = (output + text).slice(-65_536);
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    child.on('error', fail);
    child.on('close', (code, signal) => {
      if (code === 0) return settle(output);
      fail(new Error(`${basename(file)} ended with ${signal ?? code}: ${lastOf(output)}`));
    });
  });
}

/** The end of an output; in it those lines that say what is wrong, where there are any. */
export function lastOf(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const errors = lines.filter((line) => /^E: |\b(error|fatal|exception|refused|cannot)\b/i.test(line));
  return (errors.length > 0 ? errors : lines).slice(-LAST_LINES).join(' | ').slice(-1_000);
}
