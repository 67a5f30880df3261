import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** A process, told from a later one that got its number. */
export interface Identity {
  readonly pid: number;
  /** When it began, as the system tells it, with the machine's boot where there is one. */
  readonly started: string;
}

const STOP_MS = 10_000;

/** Nothing where it has ended, be it as a zombie whose parent has not looked yet. */
export function identify(pid: number): Identity | undefined {
  const started = process.platform === 'linux' ? startedOnLinux(pid) : startedElsewhere(pid);
  return started === undefined ? undefined : { pid, started };
}

export const isAlive = ({ pid, started }: Identity): boolean => identify(pid)?.started === started;

export function me(): Identity {
  const identity = identify(process.pid);
  if (identity === undefined) throw new Error(`The system does not tell when process ${process.pid} began.`);
  return identity;
}

/** Ends a process and its group: asked to first, killed after 10 s. One that is not the same any more is left alone. */
export async function stop(identity: Identity, signal: NodeJS.Signals): Promise<void> {
  for (const [how, patience] of [
    [signal, STOP_MS],
    ['SIGKILL', STOP_MS],
  ] as const) {
    if (!isAlive(identity)) return;
    // The group first heard of nothing but its leader's end: only when that is not enough it is killed whole.
    send(how === 'SIGKILL' ? -identity.pid : identity.pid, how);
    const deadline = performance.now() + patience;
    while (isAlive(identity) && performance.now() < deadline) await wait(20);
  }
  if (isAlive(identity)) throw new Error(`Process ${identity.pid} does not end.`);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Fields 3 and 22 of /proc/<pid>/stat, behind the name, which may contain anything. */
function startedOnLinux(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${fields[19]}`;
  } catch {
    return undefined;
  }
}

function startedElsewhere(pid: number): string | undefined {
  if (process.platform === 'win32') {
    const query = `(Get-Process -Id ${pid} -ErrorAction Stop).StartTime.Ticks`;
    return spawnSync('powershell', ['-NoProfile', '-Command', query], { encoding: 'utf8' }).stdout?.trim() || undefined;
  }
  const ps = spawnSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' });
  const [, state, started] = /^(\S+)\s+(.+)$/m.exec(ps.stdout ?? '') ?? [];
  return state?.startsWith('Z') ? undefined : started?.trim();
}
