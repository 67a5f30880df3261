import {
  about,
  auditEntry,
  count,
  decisionFields,
  flag,
  json,
  list,
  moment,
  object,
  oneOf,
  open,
  type Properties,
  principal,
  request,
  type Schema,
  text,
  texts,
  yes,
} from '../config/sdk/callback/api/schemas.ts';

/** The JSON Schema of what each command prints with `--json`. `npm run docs` writes them to docs/reference/json. */

const map = (values: Schema): Schema => ({ type: 'object', additionalProperties: values });
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });
const either = (...schemas: readonly Schema[]): Schema => ({ anyOf: schemas });
const milliseconds = about({ type: 'number', minimum: 0 }, 'milliseconds');

const nextActions = about(texts, 'what to do next, as commands or sentences');
const code = about(text, '`ok`, or one of the codes in errors.md');

/** What a command prints after it ran. `ok` is false if the exit status is not 0. */
const result = (data: Properties, optional: Properties = {}): Schema =>
  object({ ok: flag, code, ...data, nextActions }, optional);

/** A result of the preview, to which versions may add more. */
const openResult = (data: Properties, optional: Properties = {}): Schema => ({
  ...result(data, optional),
  additionalProperties: true,
});

const failure = object({
  ok: { const: false },
  code,
  message: text,
  why: orNull(text),
  state: about(orNull(text), 'the state that the database and the files were left in'),
  nextActions,
  where: about(orNull(text), 'a file, or a place in one'),
  details: { type: 'object' },
});

const row = object({ table: text, rows: count }, { atLeast: yes, values: count });
const kept = object({ table: text, rows: count, hours: count }, { atLeast: yes, values: count });
const copy = object({ table: text, rows: orNull(count), permitted: flag }, { estimate: yes });
const lock = about(
  object({
    table: text,
    blocks: oneOf('nothing', 'writes', 'reads and writes'),
    work: oneOf('none', 'read', 'write'),
    rows: count,
    seconds: count,
  }),
  'PostgreSQL: of a table with more than 10,000 rows. `rows` and `seconds` are estimates',
);
const plan = list(
  object(
    {
      tag: text,
      statements: list(
        object(
          { text, transactional: flag, destructive: flag },
          { loses: row, keeps: kept, copies: copy, lock, fails: open({ message: text }, { code: text, why: text }) },
        ),
      ),
    },
    {
      interrupted: about(flag, 'only the rest of its steps runs, or of its rollback'),
      lossy: texts,
      irreversible: text,
      irreversibleOn: json,
      allow: list(oneOf('copy', 'destructive')),
      lint: about(texts, 'what `svc db migrate lint` finds, without notes'),
    },
  ),
);
const planned: Properties = { plan };
const plannedOptional: Properties = {
  preamble: about(texts, 'statements to run first in the shell of the engine'),
  needs: about(list(oneOf('copy', 'destructive')), 'the permissions that a run needs'),
};
const ran: Properties = {
  migrations: list(
    object({ tag: text, status: oneOf('completed', 'rolled_back'), durationMs: milliseconds, statements: count }),
  ),
  steps: count,
  durationMs: milliseconds,
  contracts: about(texts, 'the tags that wait for svc db migrate contract'),
};
const database: Properties = { database: about(text, 'its tag in the configuration') };
const migration = open({ tag: text, name: text, up: list(open({ type: text })), down: list(open({ type: text })) });
const entry = object(
  {
    tag: text,
    state: oneOf('completed', 'pending', 'contract', 'running', 'interrupted', 'failed', 'edited', 'missing'),
  },
  {
    origin: oneOf('api', 'engine', 'file'),
    file: text,
    appliedAt: moment,
    durationMs: milliseconds,
    step: count,
    steps: count,
    error: text,
    rollingBack: yes,
  },
);
const keptEntry = object(
  { table: text, name: about(text, 'the name while it is kept'), tag: text, keptAt: moment, keptUntil: moment },
  { field: text },
);
const delegation: Properties = {
  delegationId: text,
  from: text,
  groups: texts,
  to: text,
  createdAt: moment,
  until: moment,
};
const personToken: Properties = { tokenId: text, principal: text, groups: texts, createdAt: moment, expiresAt: moment };
const findingProperties: Properties = {
  ...database,
  file: text,
  tag: text,
  rule: text,
  name: text,
  level: oneOf('error', 'warning', 'note'),
  message: text,
  impact: text,
  fix: text,
};
const findingOptional: Properties = {
  operation: about(count, 'its index in up'),
  table: text,
  formerTable: about(text, 'its name in the database, if a migration before renames it'),
  scalesWithRows: yes,
  rows: about(count, 'counted up to 10,000'),
};
const standingRule: Properties = {
  standingId: text,
  requestId: text,
  agentTag: text,
  tool: text,
  parameters: { type: 'object' },
  atMost: { type: 'object' },
  by: text,
  uses: count,
  used: count,
  createdAt: moment,
  until: moment,
};
const finding = object({ ...findingProperties, line: count }, findingOptional);
const decision = openResult(...decisionFields);

const help = object(
  { ok: yes, code, usage: text, nextActions },
  {
    commands: list(object({ command: text, summary: text })),
    command: text,
    summary: text,
    details: orNull(text),
    options: list(object({ names: texts, argument: orNull(text), required: flag, description: text })),
    examples: list(object({ description: text, command: text })),
  },
);

/** By command. For those that print one object per line: the schema of a line. */
/** Of a search for what is new in the audit. */
const sealReport = {
  last: about(count, 'the number of the last seal of the store'),
  seals: about(count, 'seals that were made'),
  requests: about(count, 'requests with new events'),
  events: about(count, 'new events'),
};

const OUTPUTS: Readonly<Record<string, Schema>> = {
  init: result({ created: texts, existing: texts }, { product: text, env: text }),
  link: result({ product: text, env: text, file: text }),
  'db schema generate': result(
    {
      migrations: list(
        object({
          ...database,
          file: text,
          migration,
          dataDependentRisks: texts,
          rollbackRisks: texts,
          lint: about(texts, 'what `svc db migrate lint` finds, without notes'),
          plan,
        }),
      ),
    },
    { written: flag },
  ),
  'db schema pull': result({
    ...database,
    schema: text,
    backup: orNull(text),
    migrations: texts,
    tables: texts,
    objects: texts,
    leftOut: texts,
    kept: texts,
    rawMade: texts,
    warnings: texts,
  }),
  'db schema check': result({
    databases: list(
      object({
        ...database,
        unfinished: about(list(entry), 'migrations that failed, were interrupted or are running'),
        differences: texts,
        outOfOrder: texts,
        unmanaged: texts,
      }),
    ),
  }),
  'db schema diff': result({
    from: text,
    to: text,
    different: flag,
    preamble: about(texts, 'statements to run first in the shell of the engine'),
    changes: list(
      object(
        {
          operation: about(open({ type: text }), 'as in a migration file'),
          statements: list(object({ text, transactional: flag, destructive: flag })),
        },
        { refusal: about(text, 'why svc cannot make the change') },
      ),
    ),
    unchangeable: about(texts, 'differences that no operation describes'),
    notCompared: about(texts, 'what svc does not read'),
    possibleRenames: about(texts, 'a flag for each removal and addition that may be a rename'),
  }),
  'db migrate': result({
    databases: list(either(object({ ...database, ...ran }), object({ ...database, ...planned }, plannedOptional))),
  }),
  'db migrate contract': result({
    databases: list(either(object({ ...database, ...ran }), object({ ...database, ...planned }, plannedOptional))),
  }),
  'db migrate status': result({
    env: text,
    databases: list(
      object(
        {
          ...database,
          state: oneOf('OK', 'PENDING', 'FAILED'),
          total: count,
          completed: count,
          pending: count,
          contracts: about(count, 'how many wait for svc db migrate contract'),
          outOfOrder: texts,
          kept: about(list(keptEntry), 'what `--keep` keeps'),
          entries: list(entry),
        },
        { lastApplied: text },
      ),
    ),
  }),
  'db migrate rollback': either(
    result({ ...database, ...ran, destroyed: list(object({ tag: text, statement: text })) }),
    result({ ...database, ...planned }, plannedOptional),
  ),
  'db migrate purge': result({
    databases: list(
      either(
        object({ ...database, purged: list(keptEntry) }),
        object({ ...database, kept: list(keptEntry), ...planned }, plannedOptional),
      ),
    ),
  }),
  'db migrate create': result({ ...database, tag: text, file: text }),
  'db migrate lint': result({
    checked: about(count, 'migrations that were checked'),
    findings: list(finding),
    ignored: list(object({ ...findingProperties, reason: text }, findingOptional)),
  }),
  'db migrate resolve': result({
    ...database,
    tag: text,
    action: oneOf('retry', 'applied', 'rolled-back', 'failed', 'forget'),
    status: oneOf('applying', 'completed', 'failed', 'rolled_back', 'forgotten'),
  }),
  'db migrate export': result({ ...database, files: texts, outOfOrder: texts }),
  'db migrate baseline': result({ ...database, tags: texts }),
  'approvals list': openResult({ records: list(request) }, { cursor: text }),
  'approvals show': openResult({ request }),
  'approvals approve': decision,
  'approvals reject': decision,
  'approvals watch': object({ event: oneOf('requested', 'decided'), request }),
  'approvals inbox': either(object({ event: { const: 'listening' }, url: text }), result({ event: text, url: text })),
  'approvals serve': either(
    object({ event: { const: 'listening' }, url: text }),
    object({ event: { const: 'waiting' }, ...database, requestId: text, expiresAt: moment }),
    object({ event: { const: 'migrated' }, ...database, migrations: texts }),
    object({ event: { const: 'failed' }, ...database, error: failure }),
    object({ event: { const: 'sealed' }, ...sealReport }),
    object({ event: { const: 'seal_failed' }, error: failure }),
    result({ event: text, url: text }),
  ),
  'approvals export': auditEntry,
  'approvals prune': openResult({ removed: count, executions: count }),
  'approvals secret': result({ url: text, product: text, env: text, secret: text }),
  login: openResult({ server: text, product: text, env: text, principal, file: text }, { expiresAt: moment }),
  logout: openResult({ server: text, removed: flag }),
  'people token create': openResult({ ...personToken, token: text }),
  'people token list': openResult({ tokens: list(open(personToken, { revokedAt: moment })) }),
  'people token revoke': openResult({ ...personToken, revokedAt: moment }),
  'approvals seal': either(result(sealReport), result({ id: text, publicKey: text })),
  'approvals prove': openResult(
    {
      proof: { const: 1 },
      request: { type: 'object' },
      events: list({ type: 'object' }),
      sealed: { type: 'object' },
      path: list({ type: 'array' }),
      seal: { type: 'object' },
    },
    { call: { type: 'object' } },
  ),
  'approvals verify': either(
    openResult(
      { checked: count, broken: list(open({ requestId: text, problems: texts })) },
      {
        seals: open(
          { from: text, seals: count, last: count, removed: count, unsealed: count, problems: texts },
          { sealedAt: moment },
        ),
      },
    ),
    openResult(
      { requestId: text, product: text, env: text, seal: count, sealedAt: moment, events: list({ type: 'object' }) },
      { call: { type: 'object' } },
    ),
  ),
  'approvals allow': openResult(standingRule),
  'approvals standing list': openResult({ standingRules: list(open(standingRule, { revokedAt: moment })) }),
  'approvals standing revoke': openResult({ ...standingRule, revokedAt: moment }),
  'people delegate': openResult(delegation),
  'people delegation list': openResult({ delegations: list(open(delegation, { revokedAt: moment })) }),
  'people delegation revoke': openResult({ ...delegation, revokedAt: moment }),
  doctor: result({
    checks: list(open({ name: text, result: oneOf('ok', 'warn', 'fail'), message: text }, { next: texts })),
  }),
  'plugins list': result({
    plugins: list(object({ name: text, from: text, registers: map(texts), taps: map(count) })),
  }),
  'plugins new': result({ kind: oneOf('dialect', 'channel', 'broker'), name: text, folder: text, created: texts }),
  '--help': help,
  '--version': object({ ok: yes, code, version: text, nextActions }),
};

/** The JSON Schema of a command: of its result, of its help and of an error. */
export function outputSchema(command: string): Schema | undefined {
  const output = Object.hasOwn(OUTPUTS, command) ? OUTPUTS[command] : undefined;
  if (!output) return undefined;
  const others = command.startsWith('--') ? [failure] : [help, failure];
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: `What svc ${command} prints with --json`,
    ...either(output, ...others),
  };
}

export const documentedCommands: readonly string[] = Object.keys(OUTPUTS);

/** Relative to docs. */
export const schemaPath = (command: string): string =>
  `reference/json/${command.replace(/^--/, '').replaceAll(' ', '-')}.json`;

export const schemaText = (command: string): string => `${JSON.stringify(outputSchema(command), null, 1)}\n`;
