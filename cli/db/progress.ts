import { describeSession } from '../../core/blocking-session.ts';
import type { Progress } from '../../core/dialect.ts';
import type { RunEvent } from '../../core/migration/preview.ts';
import type { SvcCommand } from '../base.ts';
import { formatDuration, oneLine, plural } from '../output.ts';

/** With more migrations than this, a terminal shows a counter instead of one line each. */
const MAX_LISTED = 30;

/** Reports the progress of a run on stderr. */
export function progress(command: SvcCommand, label: string, verbose: boolean): (event: RunEvent) => void {
  const { colors } = command.context;
  let total = 0;
  let done = 0;
  let counting = false;
  let heartbeat: Heartbeat | undefined;
  let lastBlockedAt = -Infinity;
  return (event) => {
    if (command.json) return;
    switch (event.type) {
      case 'waiting':
        command.note(`Waiting for another process that is migrating ${label} …`);
        return;
      case 'planned':
        total = event.migrations.length;
        counting = total > MAX_LISTED && !verbose && command.statusLine.isVisible;
        command.note(planned(event, label, total));
        return;
      case 'resumed':
        command.note(resumed(event));
        return;
      case 'started':
        heartbeat?.stop();
        heartbeat = new Heartbeat(command, event.tag);
        if (counting) command.statusLine.show(`  ${done} of ${total}  ${event.tag}`);
        return;
      case 'blocked': {
        if (performance.now() - lastBlockedAt < UPDATE_MS.lines) return;
        lastBlockedAt = performance.now();
        const [first] = event.sessions;
        const holder = first ? `on ${first.table}: ${oneLine(describeSession(first))}` : 'of another session';
        command.note(`  waiting for a lock ${holder}`);
        return;
      }
      case 'finished':
        heartbeat?.stop();
        done += 1;
        if (counting) return;
        command.note(`  ${event.tag}  ${colors.stderr.dim(formatDuration(event.durationMs))}`);
        if (verbose) for (const statement of event.statements) command.note(`    ${oneLine(statement)}`);
        return;
      case 'notice':
        command.warn(event.message);
        return;
    }
  };
}

/** Reports a migration that takes long and says nothing else. The last one of a failed run ends with the process. */
class Heartbeat {
  readonly #timer: NodeJS.Timeout;

  constructor(command: SvcCommand, tag: string) {
    const startedAt = performance.now();
    this.#timer = setInterval(() => {
      if (performance.now() - command.lastProgressAt < UPDATE_MS.lines) return;
      const text = `  ${tag}  running for ${formatDuration(performance.now() - startedAt)}`;
      if (command.statusLine.isVisible) command.statusLine.show(text);
      else command.note(text);
    }, UPDATE_MS.lines).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** Milliseconds between updates: on a status line that is overwritten, and as separate lines. */
const UPDATE_MS = { statusLine: 100, lines: 10_000 };
/** The remaining time is estimated only after this time. */
const MIN_SAMPLE_MS = 2_000;

/** Reports the progress of a step that moves many rows on stderr. */
export function batchProgress(command: SvcCommand, now = () => performance.now()): (progress: Progress) => void {
  let start: (Progress & { readonly at: number }) | undefined;
  let lastUpdate = now();
  return (progress) => {
    const at = now();
    const { collection, done, checksOnly } = progress;
    const isNew = start?.collection !== collection || start.checksOnly !== checksOnly || start.done > done;
    if (!start || isNew) start = { ...progress, at };
    if (at - lastUpdate < (command.statusLine.isVisible ? UPDATE_MS.statusLine : UPDATE_MS.lines)) return;
    lastUpdate = at;
    command.lastProgressAt = performance.now();
    const text = progressText(progress, start.done, at - start.at);
    if (command.statusLine.isVisible) command.statusLine.show(text);
    else command.note(text);
  };
}

/** `  users: 340,000 of 1,000,000 rows, 53 s left` */
function progressText({ collection, done, total, checksOnly }: Progress, from: number, took: number): string {
  const count = (number: number) => number.toLocaleString('en');
  const of = total === undefined ? '' : ` of ${count(total)}`;
  const canEstimate = total !== undefined && took >= MIN_SAMPLE_MS && done > from;
  const left = canEstimate ? `, ${formatRemaining(((total - done) / (done - from)) * took)} left` : '';
  return `  ${collection}: ${count(done)}${of} rows${checksOnly ? ' checked' : ''}${left}`;
}

const formatRemaining = (ms: number): string =>
  ms < 90_000 ? `${Math.ceil(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`;

function resumed({ tag, direction, done, steps }: Extract<RunEvent, { type: 'resumed' }>): string {
  const what = direction === 'up' ? tag : `the rollback of ${tag}`;
  return `Finishing ${what}, which was interrupted: ${done} of ${plural(steps, 'step')} ${done === 1 ? 'is' : 'are'} done`;
}

function planned(event: Extract<RunEvent, { type: 'planned' }>, label: string, total: number): string {
  const { direction, from, to } = event;
  if (direction === 'down') return `Rolling back ${label}: ${plural(total, 'migration')}`;
  return `Migrating ${label}${to === undefined ? '' : ` to ${to}`}${from === undefined ? '' : ` from ${from}`}: ${plural(total, 'migration')}`;
}
