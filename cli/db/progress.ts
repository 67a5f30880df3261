import type { RunEvent } from '../../core/migration/run-options.ts';
import { oneLine } from '../print.ts';
import type { DatabaseCommand } from './command.ts';
import { counted, milliseconds } from './words.ts';

/** Above this many migrations a terminal shows a counter instead of a line each. */
const MANY = 30;

/** Tells on stderr how a run goes. */
export function progress(command: DatabaseCommand, label: string, verbose: boolean): (event: RunEvent) => void {
  const { stderr, colors } = command.context;
  let total = 0;
  let done = 0;
  let counting = false;
  const width = process.stderr.columns ?? 80;
  const counter = (text: string): void => {
    stderr.write(`\r${text.slice(0, width - 1).padEnd(width - 1)}\r`);
  };
  return (event) => {
    if (command.json) return;
    switch (event.type) {
      case 'waiting':
        command.note(`Another process is migrating ${label}: waiting for it …`);
        return;
      case 'planned':
        total = event.migrations.length;
        counting = total > MANY && !verbose && colors.stderr.isColorSupported;
        command.note(planned(event, label, total));
        return;
      case 'started':
        if (counting) counter(`  ${done} of ${total}  ${event.tag}`);
        return;
      case 'finished':
        done += 1;
        if (counting) {
          if (done === total) counter('');
          return;
        }
        command.note(`  ${event.tag}  ${colors.stderr.dim(milliseconds(event.durationMs))}`);
        if (verbose) for (const statement of event.statements) command.note(`    ${oneLine(statement)}`);
        return;
      case 'notice':
        command.warn(event.message);
        return;
    }
  };
}

function planned(event: Extract<RunEvent, { type: 'planned' }>, label: string, total: number): string {
  const { direction, from, to } = event;
  if (direction === 'down') return `Rolling back ${label}: ${counted(total, 'migration')}`;
  return `Migrating ${label}${to === undefined ? '' : ` to ${to}`}${from === undefined ? '' : ` from ${from}`}: ${counted(total, 'migration')}`;
}
