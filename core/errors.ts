/** Every error code with its meaning. Codes are never renamed or reused: programs match on them. */
export const codes = {
  // configuration
  config_missing: 'No svc.config file was found.',
  config_invalid: 'The configuration is not valid.',
  config_failed: 'The configuration file threw an error while loading.',
  env_conflict: 'The link file and SVC_ENV name different environments.',
  env_unknown: 'The environment has no URL for the database.',
  database_unknown: 'No database with that tag is configured.',
  database_ambiguous: 'The command needs one database, but several are configured.',
  database_shared: 'Two database tags point at the same physical database.',
  plugin_invalid: 'A plugin cannot be loaded or breaks the plugin contract.',
  plugin_version: 'A plugin was built for another version of the plugin contract.',
  name_taken: 'Two plugins register the same name.',
  name_unknown: 'Nothing is registered under that name.',
  driver_missing: 'A driver is not installed.',
  install_failed: 'The packages of a new project could not be installed.',
  usage: 'The command line is not valid.',
  confirmation_required: 'The command needs confirmation, and there is no terminal to prompt on.',
  declined: 'The user declined.',
  protected_env: 'The environment is protected: changes to it need --yes.',
  file_exists: 'A file to be written already exists.',
  file_invalid: 'A file cannot be read, or its content is not valid.',
  file_failed: 'The file system rejected a read or a write.',
  // schema
  schema_missing: 'There is no schema file.',
  schema_invalid: 'The schema file or a definition is not valid.',
  field_type_unknown: 'No field type has that name.',
  field_invalid: 'A field definition is incomplete or contradicts itself.',
  name_invalid: 'A name is not valid on this engine.',
  collection_unknown: 'The table does not exist.',
  collection_exists: 'The table already exists.',
  collection_referenced: 'Foreign keys of other tables reference the table.',
  field_unknown: 'The field does not exist.',
  field_exists: 'The field already exists.',
  field_in_use: 'An index or a constraint uses the field.',
  key_in_use: 'A foreign key needs the referenced columns to stay unique.',
  index_unknown: 'The index does not exist.',
  index_exists: 'An index with that name already exists.',
  constraint_unknown: 'The constraint does not exist.',
  constraint_exists: 'A constraint with that name already exists.',
  constraint_invalid: 'A constraint is not valid.',
  rename_undecided: 'A removed and an added name look like a rename: rename, or drop and add?',
  options_cannot_change: 'Options of an existing table cannot be changed by a migration.',
  not_supported: 'The engine does not support this.',
  effect_differs: 'A raw statement did not make what its `makes` says.',
  table_differs: 'The table already exists and differs from its definition.',
  // migrations
  migration_invalid: 'A migration object is not valid.',
  tag_invalid: 'A migration tag has an invalid character or length.',
  tag_taken: 'Another migration has that tag.',
  migration_edited: 'A migration was edited after it was applied.',
  migration_missing: 'The file of an applied migration is missing.',
  migration_unknown: 'No migration has that tag.',
  migration_failed: 'A statement of a migration failed.',
  migration_half_done: 'A migration stopped half-way and needs a decision.',
  migration_not_applied: 'The migration is not applied.',
  irreversible: 'The migration cannot be rolled back.',
  not_reversible_now: 'The rollback does not fit the current schema.',
  destructive: 'The migration destroys data, which was not allowed.',
  origin_conflict: 'Pending files and API migrations change the same table.',
  order_conflict: 'Migrations were applied out of tag order, which results in a different schema.',
  hook_refused: 'A plugin stopped the run.',
  interrupted: 'The run was interrupted.',
  drift: 'The database differs from its migrations.',
  pending: 'Migrations are pending.',
  check_failed: 'The state of the database could not be reconciled.',
  // databases
  connection_failed: 'The database cannot be reached.',
  connection_lost: 'The connection to the database was lost.',
  migration_too_large: 'A migration needs more locks in one transaction than the server can hold.',
  table_locked: 'Another session holds a lock on a table or on rows.',
  statement_canceled: 'The server canceled a statement.',
  locks_exhausted: 'The server has no room for more locks.',
  copy_required: 'A statement would copy a whole table, which was not allowed.',
  authentication_failed: 'The database rejected the credentials.',
  permission_denied: 'The database user lacks a permission.',
  database_missing: 'The database does not exist on the server.',
  database_foreign: 'The database belongs to another product, tag or environment.',
  history_newer: 'The migration history was written by a newer version of this SDK.',
  history_damaged: 'A table of the history was changed, and is not as svc wrote it.',
  lock_timeout: 'Another process is migrating this database.',
  lock_lost: 'The migration lock was lost.',
  database_in_use: 'Another process has the embedded database open.',
  pooler_unsupported: 'The URL points at a connection pooler, which breaks session locks and settings.',
  schema_disagreement: 'The nodes of the cluster do not agree on the schema.',
  data_violates: 'Rows in the table do not allow the change.',
  url_invalid: 'The database URL cannot be used.',
  // data
  update_invalid: 'The update is not valid.',
  value_invalid: 'A value cannot be stored or written as JSON.',
  // approvals
  approval_decided: 'The request was already decided differently.',
  approval_expired: 'The deadline to decide the request has passed.',
  approver_required: 'Only a person who approves migrations may change who does.',
  approvers_changed: 'The changes of the database are approved elsewhere than the configuration says.',
  agent_needs_approval: 'An AI agent may not make the change without a person.',
  agent_may_not_decide: 'An AI agent may not decide requests.',
  approval_pending: 'The plan waits for approval.',
  approval_rejected: 'The plan was rejected.',
  approval_parameters_invalid: 'The modified parameters do not match the schema of the tool.',
  approval_stale: 'The tool call or the plan to approve has changed or no longer exists.',
  approval_unknown: 'The execution has no request with that id.',
  approval_unseen: 'A request was decided without proof that it was shown.',
  approvers_missing: 'Nobody can satisfy the rule for a call that needs approval.',
  call_circular: 'A tool call would wait for its own result.',
  call_conflict: 'Two tool calls have the same name.',
  decision_invalid: 'A decision is not valid.',
  decision_refused: 'A policy or an authorization check rejected the decision.',
  parameters_too_large: 'The parameters of a tool call are too large for approval.',
  idempotency_key_reused: 'The idempotency key of a decision was used for another one.',
  port_unavailable: 'The port is not available.',
  rule_invalid: 'A rule of approvals.rules cannot be applied to a call.',
  token_invalid: 'A token that proves who decides is not valid.',
  access_refused: 'A person may not list and decide requests on the server.',
  server_failed: 'The server of --server could not be reached, or its answer was not usable.',
  sign_in_failed: 'A person was not signed in.',
  token_unknown: 'No token has that id.',
  delegation_unknown: 'No delegation has that id.',
  standing_unknown: 'No standing rule has that id.',
  audit_broken: 'Stored events of requests do not fit together, or are not what was sealed.',
  seal_undelivered: 'A sink did not take a seal of the audit.',
  seal_missing: 'No seal of the audit covers the request.',
  seals_needed: 'The audit of the store is sealed, and the command cannot seal what it does.',
  // agents
  agent_invalid: 'The definition of an agent or tool is not valid.',
  agent_taken: 'An agent with that tag is already defined.',
  agent_unknown: 'No agent with that tag is defined in this process.',
  execution_finished: 'The execution has ended: there is nothing to resume.',
  execution_lost: 'Another process is running the execution.',
  execution_unknown: 'No execution has that id.',
  model_failed: 'The model could not be called, or its answer was not usable.',
  run_failed: 'The run failed with an unexpected error.',
  run_invalid: 'The arguments of the run are not valid.',
  run_too_long: 'The run reached a limit of its agent.',
} as const;

export type ErrorCode = keyof typeof codes;

export interface ErrorFacts {
  /** Why it happened, including the engine's own code and message. */
  readonly why?: string;
  /** The state after the failure. */
  readonly state?: string;
  /** What to do next: one command or sentence each. */
  readonly next?: readonly string[];
  /** The file, with line and column if known. */
  readonly where?: string;
  /** Data for programs. Never contains a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** Every expected failure: a stable code, what happened, why, and what to do next. Any other error is a bug. */
export class SvcError extends Error {
  override readonly name = 'SvcError';
  readonly code: ErrorCode;
  readonly why: string | undefined;
  readonly state: string | undefined;
  readonly next: readonly string[];
  readonly where: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    this.why = facts.why;
    this.state = facts.state;
    this.next = facts.next ?? [];
    this.where = facts.where;
    this.details = facts.details ?? {};
  }

  /** A copy with more facts, for code that catches the error and knows its context. */
  with(facts: ErrorFacts): SvcError {
    return new SvcError(this.code, this.message, {
      ...(this.why !== undefined && { why: this.why }),
      ...(this.state !== undefined && { state: this.state }),
      ...(this.where !== undefined && { where: this.where }),
      next: this.next,
      cause: this.cause,
      ...facts,
      details: { ...this.details, ...facts.details },
    });
  }
}

/** Use instead of `instanceof`, which is false when two copies of the SDK are loaded. */
export function isSvcError(error: unknown): error is SvcError {
  return error instanceof Error && error.name === 'SvcError' && 'code' in error;
}

/** The message and the reason of an error as one text. */
export function describeError({ message, why }: Pick<SvcError, 'message' | 'why'>): string {
  return [message, why].filter(Boolean).join(' ');
}

/** The message of any thrown value. Never throws. */
export function errorMessage(thrown: unknown): string {
  try {
    const message = typeof thrown === 'object' && thrown !== null && 'message' in thrown ? thrown.message : thrown;
    if (typeof message === 'string') return message;
    if (message !== thrown && message !== undefined) return JSON.stringify(message);
    return thrown instanceof Error ? thrown.name : String(thrown);
  } catch {
    return 'An error without a readable message was thrown.';
  }
}

/** Any thrown value for a log: its message, the reason, and where it happened, such as a statement without its values. */
export function describeThrown(thrown: unknown): string {
  if (!isSvcError(thrown)) return errorMessage(thrown);
  return `${describeError(thrown)}${thrown.where === undefined ? '' : ` (${thrown.where})`}`;
}

/** The code of an error of the operating system, such as `ENOENT`. */
export function systemErrorCode(error: unknown): string | undefined {
  return error instanceof Error && 'syscall' in error && 'code' in error ? String(error.code) : undefined;
}

/** A word quoted for a POSIX shell, where it needs quotes. */
export function shellQuote(word: string): string {
  return /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** What to do about each code in general. The `next` of an error is more specific: prefer it. */
export const remedies: Readonly<Record<ErrorCode, string>> = {
  config_missing: '`svc init` creates one; `--config <file>` specifies one elsewhere.',
  config_invalid: 'Fix the setting named in the message; with `defineConfig`, TypeScript reports it first.',
  config_failed: 'Fix the file: the message contains the error and its location.',
  env_conflict: 'Pass `--env`, unset SVC_ENV, or run `svc link --env` again.',
  env_unknown: 'Add a URL for that environment, or set the environment variable that contains it.',
  database_unknown: 'Use a tag from `databases` in svc.config, or add the database there.',
  database_ambiguous: 'Pass `--db <tag>`, or `{ database }` in code.',
  database_shared: 'Use one tag, or give each tag its own database or schema.',
  plugin_invalid: 'Export `definePlugin({ name, apply })` as default; the message names the problem.',
  plugin_version: 'Install a version of the plugin that fits this SDK, or build it against this one.',
  name_taken: 'Remove one of the two plugins, or register under another name.',
  name_unknown: 'Correct the spelling, or add the plugin that registers the name to svc.config.',
  driver_missing: 'Run the `npm install` command in the message.',
  install_failed: 'Install the packages listed in the message yourself.',
  usage: 'Run the command with `--help` to see its arguments and options.',
  confirmation_required: 'Pass the flag that answers the question, or run the command in a terminal.',
  declined: 'Nothing was done. Run the command again to answer differently.',
  protected_env: 'Preview the changes with `--dry-run`, then add `--yes`.',
  file_exists: 'Move the file away, or choose another name.',
  file_invalid: 'Fix the file at the line in the message, or recreate it with the command that wrote it.',
  file_failed: 'Free disk space or grant the permission, then run the command again.',
  schema_missing: 'Write it as the message shows; `svc db schema pull` writes one from an existing database.',
  schema_invalid: 'Fix the definition, or the schema file at the line in the message.',
  field_type_unknown: 'Use one of the [types](types.md).',
  field_invalid: 'Complete the definition, or remove the part that contradicts it.',
  name_invalid: 'Choose a shorter name, or one without the characters in the message.',
  collection_unknown: 'Correct the name, or create the table first.',
  collection_exists: 'Use another name, or adopt the table: `svc db schema pull`, then `svc db migrate baseline`.',
  collection_referenced: 'Drop those foreign keys first, or drop the table with `cascade`.',
  field_unknown: 'Correct the name, or add the field first.',
  field_exists: 'Use another name, or change the existing field with `modifyField`.',
  field_in_use: 'Drop the index, check or constraint first, and create it again afterwards.',
  key_in_use: 'Drop the foreign key first.',
  index_unknown: 'Correct the name. The schema file and `svc db schema check` list the indexes.',
  index_exists: 'Choose another name, or drop the existing index.',
  constraint_unknown: 'Correct the name, or create the constraint first.',
  constraint_exists: 'Choose another name, or drop the existing constraint.',
  constraint_invalid: 'Name existing columns of matching types; write one SQL condition in a check.',
  rename_undecided: 'Use `renamedFrom`, `--rename table.old:new` or `--drop table.field`.',
  options_cannot_change: 'Create a table with the new options and move the rows, or write a raw migration.',
  not_supported: 'The message names an alternative, if the engine has one.',
  effect_differs: 'Correct the statement or its `makes`: the message lists the differences.',
  table_differs: 'Change the definition to match the existing table, or use another name.',
  migration_invalid: 'Fix the migration: the message lists every problem with its path.',
  tag_invalid: '`MigrationHelpers.generateTag(name)` creates a valid tag.',
  tag_taken: 'Give each migration its own tag.',
  migration_edited: 'Restore the file, and put the change into a new migration.',
  migration_missing: 'Restore the file from version control, or write it from the history: `svc db migrate export`.',
  migration_unknown: '`svc db migrate status` lists the migrations.',
  migration_failed: 'Fix the cause in the database or the migration, then run `svc db migrate` again.',
  migration_half_done:
    '`svc db migrate resolve <tag>`: `--retry`, `--applied`, `--rolled-back`, `--failed` or `--forget`.',
  migration_not_applied: 'There is nothing to roll back; `svc db migrate status` lists what is applied.',
  irreversible: 'Write a new migration that undoes the change, or run `svc db migrate resolve <tag> --forget`.',
  not_reversible_now: 'Roll back the later migrations first.',
  destructive: 'Preview the changes with `--dry-run`, then pass `--allow-destructive`.',
  origin_conflict: '`svc db migrate export` writes the API migrations as files; remove the duplicates.',
  order_conflict:
    'Write a migration that results in the intended schema in any order; or roll back to before the newer one, and apply both.',
  hook_refused: 'Do what the plugin requires, or remove it; then `svc db migrate` resumes the run.',
  interrupted: 'Run it again: completed work is recorded. For a rollback, the message names the `--to` to use.',
  drift: '`svc db schema check` lists the differences: undo them, or adopt them with `svc db schema pull`.',
  pending: '`svc db migrate` applies them.',
  check_failed: 'Run it again. If the error persists, the message specifies what to inspect in the database.',
  connection_failed: 'Check the host, port and network, and that the server is running.',
  connection_lost: 'Run it again: it detects what was done. For a rollback, the message names the `--to` to use.',
  migration_too_large:
    'Split the migration: `svc db schema generate` writes several for many tables. Or raise `max_locks_per_transaction` on the server.',
  table_locked: 'Run it again later, or end the session that the message names.',
  statement_canceled:
    'Raise `statementTimeoutMs` of the database, or run it again when the server is less busy; if an administrator canceled it, ask them.',
  locks_exhausted: 'Run it again when the server is less busy, split the migration, or raise the limit in the message.',
  copy_required:
    'If that is acceptable, permit it: `"allow": ["copy"]` in the migration, `--allow-copy`, or in code `options: { allowCopy: true }`.',
  authentication_failed: 'Check the user and password in the URL, and the hosts the user may connect from.',
  permission_denied: 'Grant the permission named in the message, or use another user.',
  database_missing: 'Create the database, or correct the URL.',
  database_foreign: 'Correct the URL, or take over the database: `svc db migrate --adopt`.',
  history_newer: '`npm install @svc/sdk@latest`.',
  history_damaged: 'Restore the table or the row from a backup; the message also says how to do without one.',
  lock_timeout: 'Wait until the other process is done, or wait longer: `--lock-timeout 300`.',
  lock_lost: 'Run it again: it detects what was done. For a rollback, the message names the `--to` to use.',
  database_in_use: 'Stop the other process, or use a database server, which accepts many connections.',
  pooler_unsupported: "Use the server's own address and port in the URL.",
  schema_disagreement: 'Restart the nodes named in the message, or remove them from the cluster; then run it again.',
  data_violates: 'Correct the rows listed in the message, then run it again.',
  url_invalid: "Write the URL as shown on the dialect's page.",
  update_invalid: 'Fix the update at the path in the message; `db.update` needs `where` or `all: true`.',
  value_invalid: 'Write the value in the format of its field type.',
  approval_decided: 'Nothing to do: `details` contains the existing decision.',
  approval_expired: 'Let the agent request the call again; a longer `approvalTimeout` allows more time.',
  approver_required: 'Run it with SVC_TOKEN of a person who approves migrations.',
  approvers_changed: 'Configure `approval` and `approvals.store` as they were.',
  agent_needs_approval: 'Let a person run the command, or configure `approval` for the environment.',
  agent_may_not_decide: 'Let a person decide the request.',
  approval_pending: 'Run the command again once the request in `details` is approved, or wait for it with `--wait`.',
  approval_rejected: 'Change the migration; or request approval of the same plan again with `--ask-again`.',
  approval_parameters_invalid: 'Correct the parameters as `details` describes; the request is still waiting.',
  approval_stale:
    'Let the agent call the tool again, or run the migration again: what was to be approved has changed since the request.',
  approval_unknown: 'Copy `requestId` and `executionId` from the request: `svc approvals list`.',
  approval_unseen:
    'Read the request, with `reveal` if a parameter is masked, and send its `reviewToken` with the decision.',
  approvers_missing:
    'Add people to the roles of the rule in `approvals.roles`, or let another person make the request.',
  call_circular: 'Do the work in the handler itself, or give the call that it makes an id of its own.',
  call_conflict: 'Give each tool call of an execution its own id.',
  decision_invalid: 'Send a decision as described in [approvals](approvals.md).',
  decision_refused: 'The reason names who may decide, or the policy that the changed parameters violate.',
  parameters_too_large: 'Pass a reference instead of the content: the limit is 256 KiB.',
  idempotency_key_reused: 'Send each decision with a key of its own, and the same key only to repeat it.',
  port_unavailable: 'Choose another port with `--port`.',
  rule_invalid: 'Correct `match.where` of the rule: name parameters of the tool, and compare values of their types.',
  token_invalid: 'Use a token that `svc people token list` shows as valid, or create one: `svc people token create`.',
  access_refused: 'Ask who runs the server to add you to the role of `approvals.server`.',
  server_failed: 'Check the URL, and that `svc approvals serve` runs there with `approvals.server`.',
  sign_in_failed: 'Sign in again. If the provider refuses, the message has its reason: ask who administers it.',
  token_unknown: '`svc people token list` lists the ids.',
  delegation_unknown: '`svc people delegation list` lists the ids.',
  standing_unknown: '`svc approvals standing list` lists the ids.',
  audit_broken: 'Find out who wrote to the database: svc did not store what is there.',
  seal_undelivered: 'Correct what `why` names. The next `svc approvals seal` writes to the sink what it lacks.',
  seal_missing: 'Seal the audit first: `svc approvals seal`.',
  seals_needed: 'Set `approvals.seals` in svc.config, with the key that seals the store.',
  agent_invalid: 'Fix the definition: the message lists every problem with its path.',
  agent_taken: 'Use another tag, or define the agent once.',
  agent_unknown: 'Call `svc.agents.define` first, in the process that resumes the execution.',
  execution_finished: 'Start a new run; `svc.agents.get` returns the result of this one.',
  execution_lost: 'Nothing to do: another process continues the execution. `svc.agents.resume` follows it.',
  execution_unknown: 'Correct the id; `svc.agents.list` lists the executions.',
  model_failed: 'Check the API key, the model name and the provider; then call `svc.agents.resume`.',
  run_failed: 'The message contains the cause; `svc.agents.resume` continues where the run stopped.',
  run_invalid: 'Call `agent.run({ prompt })` with valid values for the arguments in the message.',
  run_too_long: 'Raise `limits`, or split the task.',
};
