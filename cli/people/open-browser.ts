import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** By platform: what opens a URL, which is an argument of its own and never read by a shell. */
const OPENERS: Partial<Record<NodeJS.Platform, readonly [program: string, ...args: string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/** Opens a URL in the browser of this machine. Rejects if that fails. */
export async function openBrowser(url: string): Promise<void> {
  const [program, ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  await promisify(execFile)(program, [...args, url]);
}
