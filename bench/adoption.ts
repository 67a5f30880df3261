import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { sqlEngines } from '../test/kit/engines.ts';
import {
  ENGINE_TITLES,
  REASONS_HEAD,
  REMADE_CLASSES,
  REMADE_HEAD,
  remadeLine,
  remadeRows,
} from '../test/kit/remade-table.ts';
import { grownOn, remake } from '../test/kit/remake.ts';

/*
 * What is the same in a database that was made again from pulled files: `npm run bench -- adoption`. Runs the cases of
 * test/remade.test.ts, in some two minutes on any machine, and writes docs/reference/adoption.md. The test compares the page
 * with what it sees.
 */

const { values: flags } = parseArgs({
  options: { quick: { type: 'boolean' }, 'no-growth': { type: 'boolean' }, 'inherit-env': { type: 'boolean' } },
});

const INTRODUCTION = `# A database made again

\`svc db schema pull\` writes the files of a database, and \`svc db migrate\` makes it again from them on an empty one. Each case is
one feature that a grown database may have, in tables and objects of its own, some with rows. All of them are pulled together and
made again on an empty database; then every fact of both catalogs is compared. \`generate\` must find nothing in either, \`check\`
must be clean, and a rollback must leave nothing. On PostgreSQL, the configuration
[lists all schemas](postgresql.md#more-than-one-schema) and asks for [privileges](objects.md#privileges).

- **same**: every fact is the same.
- **refused with a reason**: something is left out, and a warning of \`pull\` says what and why.
- **different**: something else is made in its place, and a warning says so.
- **silent**: it is not the same, and no warning says so.

\`npm run bench -- adoption\` writes this page, and a test compares it with what it sees. A case counts once, with the worst outcome of
its tables and objects.`;

const head = (cells: readonly string[]): readonly string[] => [remadeLine(cells), `|${'---|'.repeat(cells.length)}`];

const found: ReturnType<typeof remadeRows>[] = [];
for (const engine of sqlEngines) {
  // The same cases as on the server, which the test compares.
  if (engine.name === 'pglite') continue;
  if (engine.missing !== undefined) throw new Error(engine.missing);
  const grown = grownOn(engine);
  console.error(`${engine.name}: ${Object.keys(grown.cases).length} cases`);
  found.push(remadeRows(ENGINE_TITLES[engine.name] ?? engine.name, grown.cases, await remake(engine, grown)));
}
const text = [
  INTRODUCTION,
  '',
  ...head(REMADE_HEAD),
  ...REMADE_CLASSES.flatMap((title) =>
    found.flatMap(({ counts }) => counts.filter(([name]) => name === title).map(remadeLine)),
  ),
  '',
  '## What is not the same',
  '',
  ...head(REASONS_HEAD),
  ...found.flatMap(({ reasons }) => reasons.map(remadeLine)),
  '',
].join('\n');
console.log(text);
if (flags.quick !== true) await writeFile(new URL('../docs/reference/adoption.md', import.meta.url), text);
