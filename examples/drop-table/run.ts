import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PGlite } from '@electric-sql/pglite';

/**
 * An AI agent drops a table in production, with every flag that permits it. It waits all the same, until a person who is
 * verified approves it. It works on a copy of the project, so you can run it any number of times.
 */

const here = dirname(fileURLToPath(import.meta.url));
const shop = join(here, '.svc', 'shop');
const cli = join(here, '..', '..', 'dist', 'cli', 'main.cjs');
const schemaFile = join(shop, 'svc', 'database', 'schema.json');
const isInteractive = process.stdin.isTTY === true && !process.argv.includes('--yes');

const AGENT = { AI_AGENT: 'an example' };
const PENDING = 9;

function print(text: string): void {
  process.stdout.write(`\n— ${text}\n`);
}

/** Runs a command whose output is shown, and returns its exit status. */
function svc(env: Readonly<Record<string, string>>, ...args: string[]): number {
  const variables = Object.keys(env).map(
    (name) => `${name}=${name === 'SVC_TOKEN' ? '…' : env[name]?.replace(/^.* .*$/, "'$&'")} `,
  );
  process.stdout.write(`\n$ ${variables.join('')}svc ${args.join(' ')}\n`);
  return start(env, args, 'inherit').status;
}

/** Runs a command, and returns what it printed. */
const output = (...args: string[]): string => start({}, args, 'pipe').stdout;

function start(env: Readonly<Record<string, string>>, args: readonly string[], stdout: 'inherit' | 'pipe') {
  const stdio = [isInteractive ? 'inherit' : 'ignore', stdout, 'inherit'] as const;
  const ran = spawnSync(process.execPath, [cli, ...args], {
    cwd: shop,
    stdio: [...stdio],
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  if (ran.error) throw ran.error;
  return { status: ran.status ?? 1, stdout: ran.stdout ?? '' };
}

if (!existsSync(cli)) throw new Error('The package is not built: run npm run build');
rmSync(shop, { recursive: true, force: true });
for (const part of ['svc.config.ts', 'svc']) cpSync(join(here, part), join(shop, part), { recursive: true });

print('A shop in production, with three old orders. Changes that destroy data need the approval of a dba:');
svc({}, 'db', 'schema', 'generate', '--name', 'create_shop');
svc({}, 'db', 'migrate', '--yes');
const database = await PGlite.create(join(shop, '.svc', 'main'));
await database.exec('INSERT INTO old_orders (total) VALUES (10), (20), (30)');
await database.close();
// Ann keeps her token where no agent reads it.
const token = output('people', 'token', 'create', 'ann@acme.example', '--group', 'dba', '--expires', '1d').trim();

print('An agent removes a table from the schema file, and permits everything:');
const [schema] = JSON.parse(readFileSync(schemaFile, 'utf8'));
delete schema.tables.old_orders;
writeFileSync(schemaFile, JSON.stringify([schema], null, 2));
svc(AGENT, 'db', 'schema', 'generate', '--name', 'drop_old_orders', '--drop', 'old_orders');
const status = svc(AGENT, 'db', 'migrate', '--yes', '--allow-destructive');
if (status !== PENDING) throw new Error(`The plan ended with ${status}.`);

const [request] = JSON.parse(output('approvals', 'list', '--json')).records;
if (isInteractive) {
  print('You are Ann. The command shows what is asked, and you decide:');
  svc({ SVC_TOKEN: token }, 'approvals', 'approve', request.requestId);
} else {
  print('Ann reads what is asked, and approves it:');
  svc({}, 'approvals', 'show', request.requestId);
  const { reviewToken } = JSON.parse(output('approvals', 'show', request.requestId, '--json')).request;
  const review = ['--review-token', reviewToken, '--yes'];
  svc({ SVC_TOKEN: token }, 'approvals', 'approve', request.requestId, ...review);
}

print('The agent runs the same command again:');
svc(AGENT, 'db', 'migrate', '--yes', '--allow-destructive');
svc({}, 'db', 'migrate', 'status');
