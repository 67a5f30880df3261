import type { CommandClass } from 'clipanion';
import type { SvcCommand, SvcContext } from './base.ts';

/** A command and its path. Its file is imported only when the command is run. */
export interface CommandEntry {
  readonly path: string;
  readonly summary: string;
  load(): Promise<{ readonly default: CommandClass<SvcContext> & Pick<typeof SvcCommand, 'stopping'> }>;
}

/** Every command, in the order `svc --help` lists them. */
export const table: readonly CommandEntry[] = [
  { path: 'init', summary: 'Creates a project with an example schema', load: () => import('./commands/init.ts') },
  { path: 'link', summary: 'Links this folder to an environment', load: () => import('./commands/link.ts') },
  {
    path: 'db schema generate',
    summary: 'Generates migrations from changes in the schema file',
    load: () => import('./commands/db/schema/generate.ts'),
  },
  {
    path: 'db schema pull',
    summary: 'Writes the schema file and a first migration from an existing database',
    load: () => import('./commands/db/schema/pull.ts'),
  },
  {
    path: 'db schema check',
    summary: 'Compares the database with its applied migrations',
    load: () => import('./commands/db/schema/check.ts'),
  },
  {
    path: 'db schema diff',
    summary: 'Prints the difference between databases, the schema file and the history',
    load: () => import('./commands/db/schema/diff.ts'),
  },
  {
    path: 'db migrate',
    summary: 'Applies pending migrations',
    load: () => import('./commands/db/migrate.ts'),
  },
  {
    path: 'db migrate status',
    summary: 'Shows applied and pending migrations',
    load: () => import('./commands/db/migrate/status.ts'),
  },
  {
    path: 'db migrate rollback',
    summary: 'Rolls back the last migrations',
    load: () => import('./commands/db/migrate/rollback.ts'),
  },
  {
    path: 'db migrate contract',
    summary: 'Drops the old names of fields renamed with --expand',
    load: () => import('./commands/db/migrate/contract.ts'),
  },
  {
    path: 'db migrate purge',
    summary: 'Drops what --keep has kept long enough',
    load: () => import('./commands/db/migrate/purge.ts'),
  },
  {
    path: 'db migrate create',
    summary: 'Creates an empty migration to edit',
    load: () => import('./commands/db/migrate/create.ts'),
  },
  {
    path: 'db migrate lint',
    summary: 'Finds migrations that would block, break or destroy something',
    load: () => import('./commands/db/migrate/lint.ts'),
  },
  {
    path: 'db migrate resolve',
    summary: 'Resolves a migration that stopped halfway',
    load: () => import('./commands/db/migrate/resolve.ts'),
  },
  {
    path: 'db migrate export',
    summary: 'Writes migration files for migrations that are only in the history',
    load: () => import('./commands/db/migrate/export.ts'),
  },
  {
    path: 'db migrate baseline',
    summary: 'Records migrations as applied without running them',
    load: () => import('./commands/db/migrate/baseline.ts'),
  },
  {
    path: 'approvals list',
    summary: 'Lists the tool calls that wait for approval',
    load: () => import('./commands/approvals/list.ts'),
  },
  {
    path: 'approvals show',
    summary: 'Shows a request and its history',
    load: () => import('./commands/approvals/show.ts'),
  },
  {
    path: 'approvals approve',
    summary: 'Approves a tool call, optionally with changed parameters',
    load: () => import('./commands/approvals/approve.ts'),
  },
  {
    path: 'approvals reject',
    summary: 'Rejects a tool call',
    load: () => import('./commands/approvals/reject.ts'),
  },
  {
    path: 'approvals watch',
    summary: 'Streams new requests and decisions',
    load: () => import('./commands/approvals/watch.ts'),
  },
  {
    path: 'approvals inbox',
    summary: 'Opens the inbox in the browser of this machine',
    load: () => import('./commands/approvals/inbox.ts'),
  },
  {
    path: 'approvals serve',
    summary: 'Serves the callback, the API and the inbox over HTTP',
    load: () => import('./commands/approvals/serve.ts'),
  },
  {
    path: 'approvals secret',
    summary: 'Prints the secret that verifies requests to a webhook',
    load: () => import('./commands/approvals/secret.ts'),
  },
  {
    path: 'approvals allow',
    summary: 'Lets later calls like an approved one run',
    load: () => import('./commands/approvals/allow.ts'),
  },
  {
    path: 'approvals standing list',
    summary: 'Lists the standing rules',
    load: () => import('./commands/approvals/standing/list.ts'),
  },
  {
    path: 'approvals standing revoke',
    summary: 'Ends a standing rule',
    load: () => import('./commands/approvals/standing/revoke.ts'),
  },
  {
    path: 'approvals export',
    summary: 'Prints the audit as JSON Lines',
    load: () => import('./commands/approvals/export.ts'),
  },
  {
    path: 'approvals seal',
    summary: 'Signs what is new in the audit',
    load: () => import('./commands/approvals/seal.ts'),
  },
  {
    path: 'approvals prove',
    summary: 'Prints a proof of a request and its events',
    load: () => import('./commands/approvals/prove.ts'),
  },
  {
    path: 'approvals verify',
    summary: 'Checks that no stored event was changed',
    load: () => import('./commands/approvals/verify.ts'),
  },
  {
    path: 'approvals prune',
    summary: 'Removes old requests and executions',
    load: () => import('./commands/approvals/prune.ts'),
  },
  {
    path: 'people token create',
    summary: 'Creates a token that proves who decides',
    load: () => import('./commands/people/token/create.ts'),
  },
  {
    path: 'people token list',
    summary: 'Lists the tokens of people',
    load: () => import('./commands/people/token/list.ts'),
  },
  {
    path: 'people token revoke',
    summary: 'Revokes a token',
    load: () => import('./commands/people/token/revoke.ts'),
  },
  {
    path: 'people delegate',
    summary: 'Lets another person decide in your place',
    load: () => import('./commands/people/delegate.ts'),
  },
  {
    path: 'people delegation list',
    summary: 'Lists who decides in whose place',
    load: () => import('./commands/people/delegation/list.ts'),
  },
  {
    path: 'people delegation revoke',
    summary: 'Ends a delegation',
    load: () => import('./commands/people/delegation/revoke.ts'),
  },
  {
    path: 'login',
    summary: 'Logs you in to a server, to decide requests there',
    load: () => import('./commands/login.ts'),
  },
  {
    path: 'logout',
    summary: 'Removes your login to a server',
    load: () => import('./commands/logout.ts'),
  },
  {
    path: 'doctor',
    summary: 'Checks the configuration, drivers and databases',
    load: () => import('./commands/doctor.ts'),
  },
  {
    path: 'plugins list',
    summary: 'Lists loaded plugins, their source and what they register',
    load: () => import('./commands/plugins/list.ts'),
  },
  {
    path: 'plugins new',
    summary: 'Creates a package for a dialect, channel or broker',
    load: () => import('./commands/plugins/new.ts'),
  },
];
