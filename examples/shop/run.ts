import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Schema migrations, step by step, on a PostgreSQL that runs in this process: declare, generate, migrate, change, migrate
 * again, roll back. It works on a copy of the project, so you can run it any number of times.
 */

const here = dirname(fileURLToPath(import.meta.url));
const shop = join(here, '.svc', 'shop');
const cli = join(here, '..', '..', 'dist', 'cli', 'main.cjs');
const schemaFile = join(shop, 'svc', 'database', 'schema.json');
const migrations = join(shop, 'svc', 'database', 'migrations', 'main');

function print(text: string): void {
  process.stdout.write(`\n— ${text}\n`);
}

function svc(...args: string[]): void {
  process.stdout.write(`\n$ svc ${args.join(' ')}\n`);
  execFileSync(process.execPath, [cli, ...args], { cwd: shop, stdio: ['ignore', 'inherit', 'inherit'] });
}

function files(): string[] {
  return existsSync(migrations) ? readdirSync(migrations).sort() : [];
}

/** Replaces one line of the schema file and prints the change as a diff. */
function edit(line: string, ...replacement: string[]): void {
  const text = readFileSync(schemaFile, 'utf8');
  if (!text.includes(`${line}\n`)) throw new Error(`The schema file has no line ${line}`);
  writeFileSync(schemaFile, text.replace(line, replacement.join('\n')));
  const removed = replacement.includes(line) ? [] : [`-${line}\n`];
  const added = replacement.filter((one) => one !== line).map((one) => `+${one}\n`);
  process.stdout.write([...removed, ...added].join(''));
}

if (!existsSync(cli)) throw new Error('The package is not built: run npm run build');
rmSync(shop, { recursive: true, force: true });
for (const part of ['svc.config.ts', 'svc']) cpSync(join(here, part), join(shop, part), { recursive: true });

print(`${relative(process.cwd(), schemaFile)} declares a shop of twelve tables. Generate the migration:`);
svc('db', 'schema', 'generate', '--name', 'create_shop');

print('Apply it:');
svc('db', 'migrate');
svc('db', 'migrate', 'status');

print('Change the schema file: rename a field, add a field, a status and an index:\n');
edit(
  '        "phone": { "type": "String", "length": 40 },',
  '        "mobile": { "type": "String", "length": 40, "renamedFrom": "phone" },',
);
edit(
  '        "active": { "type": "Boolean", "required": true, "default": true },',
  '        "weight_grams": { "type": "Integer", "required": true, "default": 0 },',
  '        "active": { "type": "Boolean", "required": true, "default": true },',
);
edit(
  '          "enumValues": ["cart", "placed", "paid", "shipped"],',
  '          "enumValues": ["cart", "placed", "paid", "shipped", "refunded"],',
);
edit(
  '      "order_items": [{ "columns": ["order_id"] }],',
  '      "order_items": [{ "columns": ["order_id"] }],',
  '      "payments": [{ "columns": ["order_id"] }],',
);

const before = files();
svc('db', 'schema', 'generate', '--name', 'refunds_and_weights');

print('The new migration, with its rollback:');
for (const file of files().filter((name) => !before.includes(name))) {
  process.stdout.write(`\n${file}\n${readFileSync(join(migrations, file), 'utf8')}`);
}

print('Preview the statements, then apply them:');
svc('db', 'migrate', '--dry-run');
svc('db', 'migrate');

print('Roll back the last migration:');
svc('db', 'migrate', 'rollback', '--yes');
svc('db', 'migrate', 'status');

print(`The project is in ${relative(process.cwd(), shop)}. Run svc there to try more.`);
