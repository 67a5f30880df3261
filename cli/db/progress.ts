import type { Progress } from '../../core/dialect.ts';
import type { RunEvent } from '../../core/migration/run-options.ts';
import { oneLine } from '../print.ts';
import type { DatabaseCommand } from './command.ts';
import { counted, milliseconds } from './words.ts';

/** Above this many migrations a terminal shows a counter instead of a line each. */
const MANY = 30;

/** Tells on stderr how a run goes. */
export function progress(command: DatabaseCommand, label: string, verbose: boolean): (event: RunEvent) => void {
  const { colors } = command.context;
  let total = 0;
  let done = 0;
  let counting = false;
  return (event) => {
    if (command.json) return;
    switch (event.type) {
      case 'waiting':
        command.note(`Another process is migrating ${label}: waiting for it …`);
        return;
      case 'planned':
        total = event.migrations.length;
        counting = total > MANY && !verbose && command.line.isSeen;
        command.note(planned(event, label, total));
        return;
      case 'started':
        if (counting) command.line.show(`  ${done} of ${total}  ${event.tag}`);
        return;
      case 'finished':
        done += 1;
        if (counting) return;
        command.note(`  ${event.tag}  ${colors.stderr.dim(milliseconds(event.durationMs))}`);
        if (verbose) for (const statement of event.statements) command.note(`    ${oneLine(statement)}`);
        return;
      case 'notice':
        command.warn(event.message);
        return;
    }
  };
}

/** Milliseconds between two words on how far a step is: where they take each other's place, and where each stays. */
const EVERY_MS = { over: 100, below: 10_000 };
/** Of a shorter time nothing can be said of the rest. */
const SURE_MS = 2_000;

/** Tells on stderr how far a step is that moves much data. */
export function batches(command: DatabaseCommand, now = () => performance.now()): (progress: Progress) => void {
  let began: (Progress & { readonly at: number }) | undefined;
  let told = now();
  return (progress) => {
    const at = now();
    const { collection, done, checks } = progress;
    const isNew = began?.collection !== collection || began.checks !== checks || began.done > done;
    if (!began || isNew) began = { ...progress, at };
    if (at - told < (command.line.isSeen ? EVERY_MS.over : EVERY_MS.below)) return;
    told = at;
    const text = howFar(progress, began.done, at - began.at);
    if (command.line.isSeen) command.line.show(text);
    else command.note(text);
  };
}

/** `  users: 340,000 of 1,000,000, 53 s left` */
function howFar({ collection, done, total, checks }: Progress, from: number, took: number): string {
  const count = (number: number) => number.toLocaleString('en');
  const of = total === undefined ? '' : ` of ${count(total)}`;
  const isSure = total !== undefined && took >= SURE_MS && done > from;
  const left = isSure ? `, ${roughly(((total - done) / (done - from)) * took)} left` : '';
  return `  ${collection}: ${count(done)}${of}${checks ? ' checked' : ''}${left}`;
}

const roughly = (ms: number): string => (ms < 90_000 ? `${Math.ceil(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`);

function planned(event: Extract<RunEvent, { type: 'planned' }>, label: string, total: number): string {
  const { direction, from, to } = event;
  if (direction === 'down') return `Rolling back ${label}: ${counted(total, 'migration')}`;
  return `Migrating ${label}${to === undefined ? '' : ` to ${to}`}${from === undefined ? '' : ` from ${from}`}: ${counted(total, 'migration')}`;
}
