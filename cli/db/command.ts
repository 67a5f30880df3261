import { Option } from 'clipanion';
import type { MigrationFile } from '../../config/migration-files.ts';
import type { Adapter } from '../../core/database/adapter.ts';
import { SvcError } from '../../core/errors.ts';
import { SvcCommand } from '../base.ts';

/** `--db` of a command that goes with one database. */
export const ONE_DATABASE = 'The database of this tag; needed where there are several.';

/** A command on configured databases. */
export abstract class DatabaseCommand extends SvcCommand {
  override db = Option.String('--db', {
    description: 'The database of this tag; without it all, in the order of the configuration.',
  });

  /** The databases that are meant, in the order of the configuration. */
  async tags(): Promise<readonly string[]> {
    const runtime = await this.runtime();
    if (this.db !== undefined) {
      runtime.database(this.db);
      return [this.db];
    }
    if (runtime.databases.length > 0) return runtime.databases;
    throw new SvcError('config_invalid', 'No database is configured.', {
      next: ["Add databases: { main: { dialect: 'postgresql', url: … } } to the configuration."],
      ...(runtime.file !== undefined && { where: runtime.file }),
    });
  }

  /** The one database that is meant. Throws `database_ambiguous`: `what` goes with one only. */
  async oneTag(what: string): Promise<string> {
    const tags = await this.tags();
    const [tag] = tags;
    if (tag !== undefined && tags.length === 1) return tag;
    throw new SvcError('database_ambiguous', `${what} needs one database, and ${tags.length} are configured.`, {
      why: `Configured: ${tags.join(', ')}.`,
      state: 'Nothing was changed.',
      next: tags.map((name) => `--db ${name}`),
      details: { databases: tags },
    });
  }

  async connect(tag: string): Promise<Adapter> {
    return (await this.runtime()).connect(tag);
  }

  async migrations(tag: string): Promise<MigrationFile[]> {
    const { readMigrations } = await import('../../config/migration-files.ts');
    return readMigrations((await this.runtime()).root, tag);
  }

  /** Throws `protected_env` where whatever changes a database needs `--yes`. */
  async refuseProtected(yes: boolean): Promise<void> {
    const { env, protectedEnv, file } = await this.runtime();
    if (!protectedEnv || yes) return;
    throw new SvcError('protected_env', `The environment "${env}" is protected.`, {
      why: 'Whatever changes it needs --yes.',
      state: 'Nothing was changed.',
      next: [`svc ${[...this.path, '--yes'].join(' ')}`],
      ...(file !== undefined && { where: file }),
    });
  }

  /** `main (dev)` */
  async label(tag: string): Promise<string> {
    return `${tag} (${(await this.runtime()).env})`;
  }
}
