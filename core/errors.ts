/** Every error code with its meaning. A code is never renamed nor reused: programs match on it. */
export const codes = {
  // configuration
  config_missing: 'No svc.config file was found.',
  config_invalid: 'The configuration says something that cannot be used.',
  config_failed: 'The configuration file threw while it was loaded.',
  env_conflict: 'The link file and SVC_ENV name different environments.',
  env_unknown: 'The environment has no URL for this database.',
  database_unknown: 'No database of that tag is configured.',
  database_ambiguous: 'The command needs one database and the configuration has several.',
  database_shared: 'Two database tags point at the same physical database.',
  plugin_invalid: 'A plugin cannot be loaded or does not keep the contract.',
  plugin_version: 'A plugin was built for another version of the plugin contract.',
  name_taken: 'Two plugins register the same name.',
  name_unknown: 'Nothing is registered under that name.',
  driver_missing: 'The driver of a dialect is not installed.',
  install_failed: 'The packages of a new project could not be installed.',
  usage: 'The command line cannot be understood.',
  confirmation_required: 'The command needs an answer and there is no terminal to ask.',
  declined: 'The user said no.',
  protected_env: 'The environment is protected: what changes it needs --yes.',
  file_exists: 'A file that would be written exists already.',
  file_invalid: 'A file cannot be read or is not what it should be.',
  file_failed: 'The file system refused a read or a write.',
  // schema
  schema_missing: 'There is no schema file.',
  schema_invalid: 'The schema file or a definition is not valid.',
  field_type_unknown: 'No field type has that name.',
  field_invalid: 'A field definition contradicts itself or misses something.',
  name_invalid: 'A name cannot be used on this engine.',
  collection_unknown: 'The table does not exist.',
  collection_exists: 'The table exists already.',
  collection_referenced: 'Foreign keys of other tables point at the table.',
  field_unknown: 'The field does not exist.',
  field_exists: 'The field exists already.',
  field_in_use: 'An index or constraint uses the field.',
  key_in_use: 'A foreign key relies on columns staying unique.',
  index_unknown: 'The index does not exist.',
  index_exists: 'An index of that name exists already.',
  constraint_unknown: 'The constraint does not exist.',
  constraint_exists: 'A constraint of that name exists already.',
  constraint_invalid: 'A constraint cannot hold as it is written.',
  rename_undecided: 'A removed and an added name look alike: rename, or drop and add?',
  options_cannot_change: 'Options of an existing table cannot be changed by a migration.',
  not_supported: 'The engine cannot do this.',
  table_differs: 'The table exists already and is not what the definition says.',
  // migrations
  migration_invalid: 'A migration object is not valid.',
  tag_invalid: 'A migration tag has a character or a length that is not allowed.',
  tag_taken: 'Another migration has that tag.',
  migration_edited: 'A migration was edited after it was applied.',
  migration_missing: 'The file of an applied migration is gone.',
  migration_unknown: 'No migration has that tag.',
  migration_failed: 'A statement of a migration failed.',
  migration_half_done: 'A migration stopped half-way and needs a decision.',
  migration_not_applied: 'The migration is not applied.',
  irreversible: 'The migration has no way back.',
  not_reversible_now: 'The way back does not fit the schema as it is now.',
  destructive: 'The migration destroys data and that was not allowed.',
  origin_conflict: 'Pending files and migrations made by the API claim the same table.',
  order_conflict: 'Files were applied in another order than that of their tags, and make something else thereby.',
  hook_refused: 'A plugin refused to go on.',
  interrupted: 'The run was interrupted.',
  drift: 'The database is not what the migrations say.',
  pending: 'Migrations are pending.',
  check_failed: 'The state of the database could not be reconciled.',
  // databases
  connection_failed: 'The database cannot be reached.',
  connection_lost: 'The connection to the database was lost.',
  copy_required: 'A statement would copy a whole table, which was not allowed.',
  authentication_failed: 'The database refused the credentials.',
  permission_denied: 'The database user may not do this.',
  database_missing: 'The database does not exist on the server.',
  database_foreign: 'The database belongs to another product, tag or environment.',
  history_newer: 'The history was written by a newer version of this SDK.',
  lock_timeout: 'Another process is migrating this database.',
  lock_lost: 'The migration lock was lost.',
  database_in_use: 'Another process has this database folder open.',
  pooler_unsupported: 'A pooler stands before the server: session locks and settings do not hold.',
  schema_disagreement: 'The nodes of the cluster do not agree on the schema.',
  data_violates: 'Rows in the table do not allow the change.',
  url_invalid: 'The database URL cannot be used.',
  // data
  update_invalid: 'The update cannot be understood.',
  value_invalid: 'A value cannot be stored or written to JSON.',
  // approvals
  approval_decided: 'Another decision on the request stands.',
  approval_expired: 'The time to decide the request is over.',
  approval_parameters_invalid: 'Modified parameters do not fit the tool.',
  approval_stale: 'What was to be approved is no longer there.',
  approval_unknown: 'No request of that id belongs to that execution.',
  approval_unseen: 'A request with sensitive parameters was decided unseen.',
  call_conflict: 'Two tool calls have the same name.',
  decision_invalid: 'A decision cannot be understood.',
  decision_refused: 'A policy or a check of the decider refused the decision.',
  parameters_too_large: 'The parameters of a tool call are too large to be approved.',
  port_unavailable: 'A port cannot be listened on.',
  // agents
  agent_invalid: 'The definition of an agent or tool cannot be used.',
  agent_taken: 'An agent of that tag is defined already.',
  agent_unknown: 'No agent of that tag is defined here.',
  execution_finished: 'The execution has ended: there is nothing to resume.',
  execution_lost: 'The execution is run by another process.',
  execution_unknown: 'No execution has that id.',
  model_failed: 'The model could not be asked, or its answer could not be used.',
  run_failed: 'The run ended for a reason that nobody foresaw.',
  run_invalid: 'The run cannot be started with what was given.',
  run_too_long: 'The run reached a limit of its agent.',
} as const;

export type ErrorCode = keyof typeof codes;

export interface ErrorFacts {
  /** Why it happened; the engine's own code and words belong here. */
  readonly why?: string;
  /** What state was left behind. */
  readonly state?: string;
  /** What to do next, one command or sentence each. */
  readonly next?: readonly string[];
  /** The file, with line and column where they are known. */
  readonly where?: string;
  /** Facts for programs; never a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/**
 * A refusal: a stable code, what happened, and what to do next.
 * Whatever is thrown and is not one of these is a bug.
 */
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

  /** The same refusal with more facts: what the place that caught it knows. */
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

/** A copy of our modules loaded twice makes `instanceof` false; the name and the code do not lie. */
export function isSvcError(error: unknown): error is SvcError {
  return error instanceof Error && error.name === 'SvcError' && 'code' in error;
}

/** What was wrong and why, as one text. */
export function sentences({ message, why }: Pick<SvcError, 'message' | 'why'>): string {
  return [message, why].filter(Boolean).join(' ');
}

/** The message of what was thrown, which may be anything, and have anything for a message. Never throws. */
export function wordsOf(said: unknown): string {
  try {
    const message = typeof said === 'object' && said !== null && 'message' in said ? said.message : said;
    if (typeof message === 'string') return message;
    if (message !== said && message !== undefined) return JSON.stringify(message);
    return said instanceof Error ? said.name : String(said);
  } catch {
    return 'What was thrown says nothing of why.';
  }
}
