import { isDeepStrictEqual } from 'node:util';
import type { Collection, SchemaModel } from './model.ts';

/** In words, what a database has and lacks against what was expected; nothing where they agree. */
export function differences(expected: SchemaModel, found: SchemaModel): string[] {
  const lines: string[] = [];
  for (const [name, collection] of expected) {
    const other = found.get(name);
    if (other) lines.push(...collectionDifferences(collection, other));
    else lines.push(`table ${name} is missing`);
  }
  for (const name of found.keys()) if (!expected.has(name)) lines.push(`table ${name} is not expected`);
  return lines;
}

function collectionDifferences(expected: Collection, found: Collection): string[] {
  const lines: string[] = [];
  for (const kind of ['fields', 'indexes', 'constraints'] as const) {
    const word = { fields: 'field', indexes: 'index', constraints: 'constraint' }[kind];
    for (const [name, part] of expected[kind]) {
      const other = found[kind].get(name);
      if (!other) lines.push(`${word} ${expected.name}.${name} is missing`);
      else if (!isDeepStrictEqual(part, other)) lines.push(`${word} ${expected.name}.${name}: ${changed(part, other)}`);
    }
    for (const name of found[kind].keys()) {
      if (!expected[kind].has(name)) lines.push(`${word} ${expected.name}.${name} is not expected`);
    }
  }
  if (!isDeepStrictEqual(expected.options, found.options))
    lines.push(`options of ${expected.name}: ${changed(expected.options, found.options)}`);
  return lines;
}

function changed(expected: object, found: object): string {
  const want = expected as Record<string, unknown>;
  const have = found as Record<string, unknown>;
  return [...new Set([...Object.keys(want), ...Object.keys(have)])]
    .filter((key) => !isDeepStrictEqual(want[key], have[key]))
    .map((key) => `${key} is ${text(have[key])}, expected ${text(want[key])}`)
    .join(', ');
}

function text(value: unknown): string {
  return value === undefined ? 'not set' : JSON.stringify(value);
}
