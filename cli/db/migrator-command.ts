import { Option } from 'clipanion';
import type { Adapter } from '../../core/database/adapter.ts';
import { DatabaseCommand } from './command.ts';
import { secondsOf } from './numbers.ts';
import { batches } from './progress.ts';

/** A command that takes the migration lock, and waits for whoever has it or has the database open. */
export abstract class MigratorCommand extends DatabaseCommand {
  lockTimeout = Option.String('--lock-timeout', { description: 'Seconds to wait for another migrator; default 60.' });

  allowCopy = Option.Boolean('--allow-copy', false, {
    description: 'MySQL, MariaDB: allows statements that copy a table, to which nobody can write meanwhile.',
  });

  /** Throws `usage` for what is no number of seconds. */
  get lock(): { readonly lockTimeoutMs: number } {
    return { lockTimeoutMs: secondsOf('--lock-timeout', this.lockTimeout) ?? 60_000 };
  }

  /** A plan that was only shown is to be run. */
  protected override get repeated(): readonly string[] {
    return this.context.typed.filter((word) => word !== '--dry-run');
  }

  override async connect(tag: string): Promise<Adapter> {
    const label = await this.label(tag);
    return (await this.runtime()).connect(tag, {
      busyTimeoutMs: this.lock.lockTimeoutMs,
      ...(this.allowCopy && { allowCopy: true }),
      signal: this.signal,
      onProgress: batches(this),
      onWait: () => this.note(`Another process has ${label} open: waiting for it …`),
    });
  }
}
