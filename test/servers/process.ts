import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** A process, distinguishable from a later one with the same id. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Its start time as the system reports it, with the boot id on Linux. */
  readonly started: string;
}

const STOP_MS = 10_000;

/** Undefined if it has ended, including a zombie that its parent has not reaped. */
export function identify(pid: number): ProcessIdentity | undefined {
  const started = process.platform === 'linux' ? startedOnLinux(pid) : startedElsewhere(pid);
  return started === undefined ? undefined : { pid, started };
}

export const isAlive = ({ pid, started }: ProcessIdentity): boolean => identify(pid)?.started === started;

export function thisProcess(): ProcessIdentity {
  const identity = identify(process.pid);
  if (identity === undefined) throw new Error(`The system does not report the start time of process ${process.pid}.`);
  return identity;
}

/** Ends a process: sends the signal, and SIGKILL to its group after 10 s. A process that reuses the id is left alone. */
export async function stop(identity: ProcessIdentity, signal: NodeJS.Signals): Promise<void> {
  for (const [sent, timeoutMs] of [
    [signal, STOP_MS],
    ['SIGKILL', STOP_MS],
  ] as const) {
    if (!isAlive(identity)) return;
    // The first signal goes to the leader only; SIGKILL to the whole group.
    send(sent === 'SIGKILL' ? -identity.pid : identity.pid, sent);
    const deadline = performance.now() + timeoutMs;
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

/** Fields 3 and 22 of /proc/<pid>/stat, counted after the name, which may contain any character. */
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
