import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The main job, step by step, on a PostgreSQL that runs inside the process: declare, generate, migrate, change,
 * migrate again, roll back. It works on a copy, so that it can be run as often as you like.
 */

const here = dirname(fileURLToPath(import.meta.url));
const shop = join(here, '.svc', 'shop');
const cli = join(here, '..', '..', 'dist', 'cli', 'main.cjs');
const schemaFile = join(shop, 'svc', 'database', 'schema.json');
const migrations = join(shop, 'svc', 'database', 'migrations', 'main');

function say(text: string): void {
  process.stdout.write(`\n— ${text}\n`);
}

function svc(...args: string[]): void {
  process.stdout.write(`\n$ svc ${args.join(' ')}\n`);
  execFileSync(process.execPath, [cli, ...args], { cwd: shop, stdio: ['ignore', 'inherit', 'inherit'] });
}

function files(): string[] {
  return existsSync(migrations) ? readdirSync(migrations).sort() : [];
}

/** Changes one line of the schema file and shows it as a difference. */
function edit(line: string, ...instead: string[]): void {
  const text = readFileSync(schemaFile, 'utf8');
  if (!text.includes(`${line}\n`)) throw new Error(`The schema file has no line ${line}`);
  writeFileSync(schemaFile, text.replace(line, instead.join('\n')));
  const gone = instead.includes(line) ? [] : [`-${line}\n`];
  const added = instead.filter((one) => one !== line).map((one) => `+${one}\n`);
  process.stdout.write([...gone, ...added].join(''));
}

if (!existsSync(cli)) throw new Error('The package is not built yet: npm run build');
rmSync(shop, { recursive: true, force: true });
for (const part of ['svc.config.ts', 'svc']) cpSync(join(here, part), join(shop, part), { recursive: true });

say(`A shop of twelve tables is declared in ${relative(process.cwd(), schemaFile)}. Write the migration:`);
svc('db', 'schema', 'generate', '--name', 'create_shop');

say('Apply it:');
svc('db', 'migrate');
svc('db', 'migrate', 'status');

say('Now the shop changes. In the schema file a field is renamed, one is new, a status and an index are added:\n');
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

say('The new migration, with its way back:');
for (const file of files().filter((name) => !before.includes(name))) {
  process.stdout.write(`\n${file}\n${readFileSync(join(migrations, file), 'utf8')}`);
}

say('What it would run, and then run it:');
svc('db', 'migrate', '--dry-run');
svc('db', 'migrate');

say('Changed your mind? Roll the last one back:');
svc('db', 'migrate', 'rollback', '--yes');
svc('db', 'migrate', 'status');

say(`All of it is in ${relative(process.cwd(), shop)}: look around, or run svc there yourself.`);
