import { spawn } from 'node:child_process';
import { basename } from 'node:path';

/** Lines of a failed program's output that its error repeats. */
const LAST_LINES = 6;

/** Runs a program until it exits and returns its output; throws the last lines of the output on failure. */
export function runProgram(
  file: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; uid?: number; gid?: number } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const append = (text: string): void => {
      output = (output + text).slice(-65_536);
    };
    child.stdout.setEncoding('utf8').on('data', append);
    child.stderr.setEncoding('utf8').on('data', append);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0) return resolve(output);
      reject(new Error(`${basename(file)} ended with ${signal ?? code}: ${lastErrorLines(output)}`));
    });
  });
}

/** The last lines of an output that report an error, or simply the last lines if none does. */
export function lastErrorLines(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const errors = lines.filter((line) => /^E: |\b(error|fatal|exception|refused|cannot)\b/i.test(line));
  return (errors.length > 0 ? errors : lines).slice(-LAST_LINES).join(' | ').slice(-1_000);
}

/** An error in one line. The AggregateError of a failed connection has no message of its own. */
export function errorLine(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(errorLine).join(', ');
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? (error.message.split('\n')[0] ?? '') : errorLine(error.cause);
}
