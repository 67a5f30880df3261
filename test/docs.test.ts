import * as assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { table } from '../cli/command-list.ts';
import { FIELD_TYPES } from '../core/schema/model.ts';
import { outdated } from '../docs/generate.ts';
import { documentedCommands, schemaPath } from '../docs/output-schemas.ts';
import { deadLinks } from './kit/docs-links.ts';
import { test } from './kit/test.ts';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const docs = join(root, 'docs');
const pages = readdirSync(docs, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.md') && !name.startsWith('typedoc'),
);
const page = (name: string) => readFileSync(join(docs, name), 'utf8');

test('generated parts match the source', async () => {
  assert.deepEqual(
    (await outdated()).map(([page]) => page),
    [],
    'npm run docs writes it',
  );
});

test('exactly the commands are listed', () => {
  const written = [...page('reference/commands.md').matchAll(/^\| `svc ([a-z ]+?)(?: [<-].*)?` \|/gm)].map(
    (match) => match[1],
  );
  assert.deepEqual(written.sort(), table.map(({ path }) => path).sort());
});

test('the output of every command has a schema, and a link to it', () => {
  const commands = [...table.map(({ path }) => path), '--help', '--version'];
  assert.deepEqual([...documentedCommands].sort(), commands.sort());
  const text = page('reference/json.md');
  for (const command of commands)
    assert.ok(text.includes(`](${schemaPath(command).replace('reference/', '')})`), command);
  assert.deepEqual(readdirSync(join(docs, 'reference/json')).length, commands.length);
});

test('every field type is listed', () => {
  const text = page('reference/schema-file.md');
  assert.deepEqual(
    FIELD_TYPES.filter((type) => !text.includes(`\`${type}\``)),
    [],
  );
});

test('links lead to files and headings of the repository', () => {
  const examples = readdirSync(join(root, 'examples')).map((name) => `examples/${name}/README.md`);
  const others = ['README.md', 'CONTRIBUTING.md', 'examples/README.md', ...examples];
  const dead = deadLinks(root, [
    ...pages.map((name) => `docs/${name}`),
    ...others.filter((name) => existsSync(join(root, name))),
  ]);
  assert.deepEqual(dead, []);
});
