import type { CommandClass } from 'clipanion';
import type { SvcContext } from './base.ts';

/** A command as it is typed. Its file is imported only when it is the one that was typed. */
export interface CommandEntry {
  readonly path: string;
  readonly summary: string;
  load(): Promise<{ readonly default: CommandClass<SvcContext> }>;
}

/** Every command, in the order `svc --help` lists them. */
export const table: readonly CommandEntry[] = [
  { path: 'init', summary: 'Makes a project whose next command works', load: () => import('./commands/init.ts') },
  { path: 'link', summary: 'Ties this folder to an environment', load: () => import('./commands/link.ts') },
  {
    path: 'db schema generate',
    summary: 'Writes migrations for what the schema file says',
    load: () => import('./commands/db/schema/generate.ts'),
  },
  {
    path: 'db schema pull',
    summary: 'Writes the schema file and a first migration from a database that exists',
    load: () => import('./commands/db/schema/pull.ts'),
  },
  {
    path: 'db schema check',
    summary: 'Compares the database with what its migrations made',
    load: () => import('./commands/db/schema/check.ts'),
  },
  {
    path: 'db migrate',
    summary: 'Applies pending migrations',
    load: () => import('./commands/db/migrate.ts'),
  },
  {
    path: 'db migrate status',
    summary: 'Shows what is applied and what is pending',
    load: () => import('./commands/db/migrate/status.ts'),
  },
  {
    path: 'db migrate rollback',
    summary: 'Takes back the last migrations',
    load: () => import('./commands/db/migrate/rollback.ts'),
  },
  {
    path: 'db migrate create',
    summary: 'Writes an empty migration to edit',
    load: () => import('./commands/db/migrate/create.ts'),
  },
  {
    path: 'db migrate resolve',
    summary: 'Decides about a migration that stopped half-way',
    load: () => import('./commands/db/migrate/resolve.ts'),
  },
  {
    path: 'db migrate export',
    summary: 'Writes migrations of the history that have no file as files',
    load: () => import('./commands/db/migrate/export.ts'),
  },
  {
    path: 'db migrate baseline',
    summary: 'Records migrations as applied without running them',
    load: () => import('./commands/db/migrate/baseline.ts'),
  },
  {
    path: 'approvals list',
    summary: 'Lists the tool calls that wait for a human',
    load: () => import('./commands/approvals/list.ts'),
  },
  {
    path: 'approvals show',
    summary: 'Shows a request with everything that happened to it',
    load: () => import('./commands/approvals/show.ts'),
  },
  {
    path: 'approvals approve',
    summary: 'Lets a tool call run, with changed parameters too',
    load: () => import('./commands/approvals/approve.ts'),
  },
  {
    path: 'approvals reject',
    summary: 'Keeps a tool call from running',
    load: () => import('./commands/approvals/reject.ts'),
  },
  {
    path: 'approvals watch',
    summary: 'Tells of requests as they come and are decided',
    load: () => import('./commands/approvals/watch.ts'),
  },
  {
    path: 'approvals serve',
    summary: 'Answers the callback of webhooks over HTTP',
    load: () => import('./commands/approvals/serve.ts'),
  },
  {
    path: 'approvals export',
    summary: 'Writes the audit as lines of JSON',
    load: () => import('./commands/approvals/export.ts'),
  },
  {
    path: 'approvals prune',
    summary: 'Removes requests and executions that are long over',
    load: () => import('./commands/approvals/prune.ts'),
  },
  {
    path: 'doctor',
    summary: 'Checks configuration, drivers and databases',
    load: () => import('./commands/doctor.ts'),
  },
  {
    path: 'plugins list',
    summary: 'Lists what is loaded, from where, and what it registers',
    load: () => import('./commands/plugins/list.ts'),
  },
  {
    path: 'plugins new',
    summary: 'Writes a package for a dialect, channel or broker of your own',
    load: () => import('./commands/plugins/new.ts'),
  },
];
