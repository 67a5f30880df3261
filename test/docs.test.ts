import * as assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { table } from '../cli/table.ts';
import { codes } from '../core/errors.ts';
import { FIELD_TYPES } from '../core/schema/types.ts';
import { test } from './kit/test.ts';

const docs = join(dirname(dirname(fileURLToPath(import.meta.url))), 'docs');
const page = (name: string) => readFileSync(join(docs, name), 'utf8');

test('every error code is explained', () => {
  const lines = Object.entries(codes).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  const written = page('errors.md')
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  assert.deepEqual(written, lines);
});

test('every command is listed, and no other', () => {
  const written = [...page('commands.md').matchAll(/^\| `svc ([a-z ]+?)(?: [<-].*)?` \|/gm)].map((match) => match[1]);
  assert.deepEqual(written.sort(), table.map(({ path }) => path).sort());
});

test('every field type is listed', () => {
  const text = page('schema-file.md');
  assert.deepEqual(
    FIELD_TYPES.filter((type) => !text.includes(`\`${type}\``)),
    [],
  );
});

test('links lead somewhere', () => {
  for (const name of readdirSync(docs)) {
    const links = [...page(name).matchAll(/\]\((?!https:)([^)#]+)/g)].map((match) => match[1] ?? '');
    assert.deepEqual(
      links.filter((link) => !existsSync(join(docs, link))),
      [],
      name,
    );
  }
});
