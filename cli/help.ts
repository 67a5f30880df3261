import type { Cli } from 'clipanion';
import type { SvcContext } from './base.ts';
import { type CommandEntry, table } from './command-list.ts';
import type { Colors } from './output.ts';

/** Lists the commands of a group, one line each; undefined for an unknown group. */
export function overview(words: readonly string[], colors: Colors): string | undefined {
  const prefix = words.length === 0 ? '' : `${words.join(' ')} `;
  const below = table.filter((entry) => entry.path.startsWith(prefix));
  if (below.length === 0) return undefined;
  const width = Math.max(...below.map((entry) => entry.path.length));
  const lines = below.map(({ path, summary }) => `  ${colors.bold(`svc ${path.padEnd(width)}`)}  ${summary}`);
  return `${[
    `${colors.bold('usage')} svc ${prefix}<command> [options]`,
    '',
    ...lines,
    '',
    'Every command accepts --help, --json, --config <file>, --env <env> and --no-color.',
  ].join('\n')}\n`;
}

/** The help of one command: description, usage, options, examples. */
export function commandHelp(entry: CommandEntry, cli: Cli<SvcContext>, colors: Colors): string {
  const [definition] = cli.definitions();
  const options = (definition?.options ?? []).map(({ definition: name, description = '' }) => ({
    name: optionText(name),
    description: description.trim(),
  }));
  // Removed from the arguments before clipanion parses them.
  options.push({ name: '--no-color', description: 'Prints without color.' });
  const width = Math.max(...options.map((option) => option.name.length));
  const examples = definition?.examples ?? [];
  return `${[
    `${entry.summary}.`,
    ...(definition?.details ? ['', definition.details.replaceAll(/ +$/gm, '').trim()] : []),
    '',
    `${colors.bold('usage')} ${usageOf(entry, cli)}`,
    '',
    ...options.map(({ name, description }) => `  ${name.padEnd(width)}  ${description}`),
    ...examples.flatMap(([description, command], index) => [
      ...(index === 0 ? ['', colors.bold('examples')] : []),
      `  ${description.trim()}`,
      `    ${command}`,
    ]),
  ].join('\n')}\n`;
}

/** `svc db migrate create <name> [options]`, including required options. */
export function usageOf(entry: CommandEntry, cli: Cli<SvcContext>): string {
  const [definition] = cli.definitions();
  const required = (definition?.options ?? []).filter((option) => option.required);
  return [
    definition?.usage ?? `svc ${entry.path}`,
    ...required.map((option) => optionText(option.definition)),
    '[options]',
  ].join(' ');
}

const PLACEHOLDERS: Readonly<Record<string, string>> = {
  '--agent': '<tag>',
  '--before': '<date>',
  '--config': '<file>',
  '--count': '<count>',
  '--cursor': '<cursor>',
  '--db': '<tag>',
  '--drop': '<name>',
  '--env': '<env>',
  '--execution': '<id>',
  '--host': '<address>',
  '--ignore': '<table>',
  '--limit': '<count>',
  '--lock-timeout': '<seconds>',
  '--name': '<name>',
  '--older-than': '<age>',
  '--port': '<port>',
  '--reason': '<text>',
  '--rename': '<old>:<new>',
  '--review-token': '<token>',
  '--set': '<parameter>=<value>',
  '--since': '<date>',
  '--status': '<status>',
  '--to': '<tag>',
};

/** clipanion writes an option with an argument as `-n,--count #0`. */
function optionText(option: string): string {
  const [names = '', argument] = option.split(' ');
  const placeholder = PLACEHOLDERS[names.split(',').at(-1) ?? ''] ?? '<value>';
  return `${names.replaceAll(',', ', ')}${argument === undefined ? '' : ` ${placeholder}`}`;
}
