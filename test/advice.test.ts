import * as assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { adviceTexts } from './kit/advice-texts.ts';
import { test } from './kit/test.ts';

const folder = fileURLToPath(new URL('.', import.meta.url));

/** An advice that names a command, a flag, a setting, a parameter of a URL, a variable or a call. Others are sentences. */
const NAMES =
  /\bsvc (?:[a-z]|<…>)|(?<!\w)--[a-z]|\bnpm |\bopenssl |\bsvc\.(?:\w+\.|config)|\w\(|\w+: ?(?:['{[]|true)|\?\w+=|\w=\S|[A-Z]{3,}_[A-Z]|"\w+":/;

/** Advice that another test provokes and follows. */
const TRIED_ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  'changed-history.test.ts': [
    'Then: svc db migrate baseline    records it again, from its file',
    'Or drop _svc_migrations, and _svc_meta if there is one, then: svc db migrate baseline    records the files of what is applied',
    'Or, if the database is the one of this environment: svc db migrate --adopt    writes the row again',
  ],
  'postgresql-schemas.test.ts': [
    '--schemas public,billing',
    "Write schemas: ['public', 'billing'] next to the URL: svc's own tables are in the first one.",
    'List it next to the URL in svc.config: schemas: [<…>]',
  ],
  'plan-approval-interrupted.test.ts': [
    'svc db migrate resolve <…> --retry    requests approval, and then finishes it',
  ],
  'key-value-adopt.test.ts': ['Adopt its rows, which stay as they are: svc db migrate baseline'],
  'cli-approvals.test.ts': [
    'svc approvals show <…><…> --json    shows it, with its request.reviewToken',
    '<…> --review-token <reviewToken>',
    'svc approvals show <…> --reveal    shows what is masked',
    'svc approvals approve <…> --review-token <…><…>',
    'svc approvals reject <…> --reason <reason>',
    'svc approvals show <requestId>    shows what is stored now',
  ],
  'inbox-abuse.test.ts': [
    "Add to the configuration: approvals: { server: { role: '<role>' }, callbackBase: 'https://…' }",
  ],
  'cli-frame-project.test.ts': [
    'npx svc link --env <…>',
    'npx svc db schema generate',
    'npx svc db migrate',
    'npx svc db migrate status',
    'npx svc doctor',
  ],
  'cli-keep.test.ts': [
    'Preview first: svc db migrate purge --dry-run',
    'Then: svc db migrate purge --allow-destructive',
    'Run the command without --keep, after a backup.',
  ],
  'expand-names.test.ts': [
    'Or apply all in order: svc db migrate rollback <…>, then svc db migrate contract, then svc db migrate',
    'svc db migrate --to <…>, then svc db migrate contract, then svc db migrate',
    'svc db migrate contract, then svc db migrate',
    'Or, if every environment has applied "<…>", remove "contracts" from it: svc db migrate then applies it before this one.',
    'Rename the field without --expand or "mirrors", or change its definition before, in a migration of its own.',
  ],
  'expand-contract.test.ts': [
    'Remove "mirrors": the values of the field are then lost.',
    'First drop the old one: svc db migrate contract',
    'Rename the field in one migration, without --expand or "mirrors".',
    'First rename the table, without --expand: --rename <…>:<…>',
    'Give the field a name that is free, or rename it without --expand.',
    'svc db schema generate --rename <table>.<old field>:<new field> --expand',
  ],
  'cli-lint.test.ts': ['--format <…>'],
  'cli-early-exit.test.ts': ['Run it with NODE_OPTIONS=--trace-exit, which prints where process.exit() is called.'],
  'cli-plan-approval.test.ts': [
    'svc approvals show <…>    for those who decide',
    'Run it with SVC_TOKEN of a person who approves them.',
    'Run the command again once it is approved, or wait for the decision: --wait 30m',
    'Change the migration. Or ask again, for the same plan: --ask-again',
    'Run it in parts: svc db migrate --to <tag>',
    'If everybody may change it: environments: { <…>: { local: true } }',
  ],
  'plan-approval.test.ts': ["Set environments.<…>.approval: { role: '…' }, and the role in approvals.roles."],
  'cli-seals.test.ts': [
    'svc approvals verify    names what was changed',
    'svc approvals verify    names what differs',
    'openssl genpkey -algorithm ed25519 -outform DER | base64    creates one',
    'openssl genpkey -algorithm ed25519 -outform DER | base64    creates a key',
    'svc approvals seal --public-key    prints it, where approvals.seals.key is set',
    'svc approvals seal    tries again',
    'svc approvals seal    seals what is new',
    'After a change of the key: add the public key of that time to approvals.seals.publicKeys, or pass it with --key.',
    "Set approvals: { seals: { key: process.env.SVC_SEAL_KEY, sinks: { file: { type: 'file', path: 'seals.jsonl' } } } } in svc.config.",
    'svc approvals verify --key <file>    verifies with it, as approvals.seals.publicKeys does',
    "Set path: 'seals.jsonl', relative to the folder of the configuration.",
    "Set url, and secrets: ['whsec_…']; echo whsec_$(openssl rand -base64 32) creates one.",
  ],
  'cli-server.test.ts': [
    'svc login <…>    stores your token',
    'svc login <…>    stores another token',
    'Check the URL, and that svc approvals serve runs there with approvals.server.',
    'svc approvals show <…>    shows whether it was',
    'svc people delegation list    shows whether it was',
    'svc approvals standing list    shows whether it was',
    'Correct SVC_TOKEN, or unset it to use the token of svc login.',
    'Or set SVC_TOKEN to your token.',
    'svc approvals list --server <…>',
    'svc people token create <id> --expires 90d    creates one, where the configuration is',
    'It is not a file of `svc login`.',
    'Revoke its token if others may have it, then run `svc login` again.',
  ],
  'cli-people.test.ts': [
    'Send the token of a person, or sign in. On the command line, set SVC_TOKEN.',
    'svc people token list    lists the tokens',
    'svc people token create <id> --expires 90d    creates one',
    'svc people delegation list    lists the delegations',
    'svc approvals standing list    lists the standing rules',
  ],
  'schema-diff.test.ts': ['--from empty --to <url>', 'For a migration made through the API: svc db migrate export'],
  'embedded-dialect.test.ts': [
    'svc db schema pull, then svc db migrate baseline    adopts them; then generate the change again',
  ],
  'mysql-server.test.ts': [
    'Trust its certificate: NODE_EXTRA_CA_CERTS=<file>',
    'Or encrypt without verification: ?tls=encrypt',
  ],
  'migration-allow.test.ts': [
    'If that is acceptable: svc db migrate --allow-copy',
    'Or permit it in the migration: "allow": ["copy"]',
    'In code, the options of the database or of its connection: options: { allowCopy: true }',
  ],
  'native.test.ts': [
    'Write it as WITH (fillfactor=80, autovacuum_enabled=false), or as PARTITION BY RANGE (created_at).',
    'Write what follows the name of the table in CREATE INDEX: USING gin (data), or (lower(email)) WHERE gone IS NULL.',
    'Write it as ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8.',
  ],
  'postgresql-server.test.ts': [
    'For a certificate that Node does not trust: sslrootcert=<file>, or sslmode=no-verify to encrypt without verification.',
    'For a server without TLS: sslmode=disable',
  ],
};

/** Advice that no test follows, and why. */
const NOT_TRIED: Readonly<Record<string, readonly string[]>> = {
  'It installs packages from a registry.': [
    'Update the SDK: npm install @svc/sdk@latest',
    'npm install @svc/sdk@latest',
    'npm install <…>@latest',
    'npm test',
    'npm install <…>@<…>',
  ],
  'It asks for a correction that only its reader can choose.': [
    'Remove one of the two plugins from svc.config.',
    'Correct the URL in svc.config, or set approvals.store to another database.',
    'Correct the name in "<…>", or add the plugin that registers the dialect to svc.config.',
    'Remove one of the two from svc.config.',
    'Fix package.json, then run svc init again.',
  ],
  'Not tried yet: add a case, and remove it from this list.': [
    'Or write a new migration that corrects the schema: svc db migrate create <name>',
    'Or roll back by hand, then: svc db migrate resolve <…> --rolled-back',
    'Call svc.agents.define for "<…>" first.',
    "svc.agents.resume('<…>')",
    'Read them with svc.approvals.get(requestId, { reveal: true }) and pass its reviewToken.',
    'Read the request with svc.approvals.get(requestId, { reveal: true }) and pass its reviewToken.',
    'svc approvals list    lists the waiting requests',
    'Split it into several migrations. If it is applied nowhere yet: remove its file, then: svc db schema generate    writes several smaller ones',
    "migration(MigrationHelpers.generateTag('add_orders'))",
    'Or roll back by hand, with values for those rows, then: svc db migrate resolve <…> --rolled-back',
    'svc db migrate rollback --to <…>',
    'new MigrationEngine(db.getAdapter())',
    'engine.getHistory() returns the applied migrations.',
    'engine.getStatus({ definedMigrations: [migration] })',
    'Roll that back as well: svc db migrate rollback <…>',
    'Or undo it by hand, then: svc db migrate resolve <…> --rolled-back',
    'Roll back the migrations after it first: svc db migrate rollback -n <…>',
    "MigrationHelpers.generateTag('add_orders')",
    'Set required: true on <…>.',
    'Export a migration as the default export: migration(tag)…build().',
    '--rename <…>:<new name>',
    "agent.run({ prompt: '…' })",
    'svc approvals secret <…>    prints the derived secret, which applies once that entry is removed',
    'Add to the configuration: approvals: { callbackKey: process.env.SVC_CALLBACK_KEY }',
    "Set approvals: { store: { database: '<tag>' } } in svc.config.",
    'Decide in the process that has it open: through its callback (approvals.callbackBase), or svc.agents.signal in its code.',
    'Use another port with --port.',
    "Set a database: approvals: { store: { database: 'main' } }",
  ],
  'It runs a program that is not part of svc.': [
    'openssl rand -base64 32    creates one; keep it out of the repository',
    'openssl rand -base64 32    generates one; keep it out of the repository',
    'echo <…>$(openssl rand -base64 32)    creates one',
  ],
  'Of a plugin; not tried yet: add a case with its engine, and remove it from this list.': [
    "model: { provider: 'scripted', model: 'demo', settings: { turns: [{ text: 'Hello.' }] } }",
    "Remove them. Options are written next to the URL: schema: '…', options: { … }",
    'Remove it, or for a setting of the server write ?options=-c%20<setting>%3D<value>. Parameters are <…>.',
    'Write cassandra://user:password@host:9042,host:9042/keyspace?dc=datacenter1',
    'Run the command again when the other process is done, or wait longer: --lock-timeout 300',
    "Remove using: 'sai'.",
    'Mark a field with primaryKey: true, or name it in cassandraOptions.partitionKey.',
    'Use the type uuid, and uuid() in your INSERT.',
    'Mark the fields with primaryKey: true, or use cassandraOptions, when you create the table.',
    'Give the field another name and the new type, with "renamedFrom" in the schema file, or in a migration with { "type": "renameField", "collection", "from", "to", "strategy": "copy", "changes": { "type" } }: it adds a new column, converts every value and drops the old column.',
    'Use { "type": "renameField", "collection", "from", "to", "strategy": "copy" }: it adds a new column, copies every value and drops the old column.',
    "Create an index for each field (with using: 'sai' a query can use several), or a table with those fields as its key.",
    "Use CQL: raw('cassandra', …) in a migration, or your own driver.",
    "Keep its name, or add the new column with raw('cassandra', …), let your application write to both, copy the values, and drop the old column.",
    'Mark one field, or two, with primaryKey: true, or name them in dynamoOptions.',
    'Write { "name": "<…>", "type": "<…>" }, or give the field another type.',
    'Add streamEnabled: true.',
    "Give both with billingMode: 'PROVISIONED', or use billingMode: '<…>'.",
    'Write one request as AWS documents it: {"PutItem": {"TableName": "users", "Item": {"id": {"S": "1"}}}}',
    'Mark a field with primaryKey: true, or name it in dynamoOptions.partitionKey.',
    'List the values: { <…>: { "$in": [ … ] } }',
    'See what differs: svc db schema check',
    'Remove the protection first: {"UpdateTable": {"TableName": "<…>", "DeletionProtectionEnabled": false}}',
    'Change the validator with raw collMod first, then: svc db schema pull',
    'For example: { "collMod": "users", "validationLevel": "moderate" }',
    'For example: { "$gte": ["$total", 0] }',
    'For example: { "$expression": "{ \\"$toUpper\\": \\"$name\\" }" }',
    'Write only the name of the collection: svc adds the database of the environment.',
    'It has the type <…>, whose values svc cannot write.',
    "For example: (keys(tags)) USING 'sai' WITH OPTIONS = {'case_sensitive': 'false'}",
    'Begin it with: { "create": "<…>", "viewOn": …, "pipeline": […] }',
    'Add it to the options: jsonSchema: { <…>: … }.',
    'Run with { configurable: { thread_id } }, or set executionId.',
    '--dialect <name>',
    "Set dialect: '<…>' in svc.config.",
    "Name one next to the URL in svc.config: schema: 'public'.",
    'Correct its name next to the URL in svc.config.',
    "Name the schema next to the URL in svc.config: schema: '<…>' to use the existing tables, schema: '<…>' to start with an empty history.",
    'Drop the dependent object first: with cascade, svc only drops foreign keys of the same schema.',
    'Mark one field with primaryKey: true.',
  ],
  'It depends on the account or the load of a server.': [
    'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run with an IAM role.',
    'If other sessions hold many locks, run the command again later: SELECT pid, count(*) FROM pg_locks GROUP BY 1',
  ],
};

const texts = adviceTexts()
  .map(({ text }) => text)
  .filter((text) => NAMES.test(text));

/** The texts that the tests of advice pass to `advised`. */
const tried = readdirSync(folder)
  .filter((name) => /^advice-.*\.test\.ts$/.test(name))
  .map((name) => readFileSync(join(folder, name), 'utf8').replaceAll("\\'", "'"))
  .join('\n');

test('every advice that names a command, a setting or a call is followed by a test, or says why not', () => {
  assert.ok(texts.length > 150, `only ${texts.length} found`);
  const listed = new Set([TRIED_ELSEWHERE, NOT_TRIED].flatMap((list) => Object.values(list).flat()));
  assert.deepEqual(
    texts.filter((text) => !listed.has(text) && !tried.includes(text)),
    [],
  );
});

test('the lists have nothing that is gone or tried', () => {
  const listed = [TRIED_ELSEWHERE, NOT_TRIED].flatMap((list) => Object.values(list).flat());
  assert.deepEqual(
    listed.filter((text, index) => !texts.includes(text) || tried.includes(text) || listed.indexOf(text) !== index),
    [],
  );
  assert.deepEqual(
    Object.keys(TRIED_ELSEWHERE).filter((name) => !existsSync(join(folder, name))),
    [],
  );
});
