import type { Cli } from 'clipanion';
import type { SvcContext } from './base.ts';
import type { Colors } from './print.ts';
import { type CommandEntry, table } from './table.ts';

/** The commands below these words, one line each; undefined where there are none. */
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
    'Every command takes --help, --json, --config <file>, --env <env> and --no-color.',
  ].join('\n')}\n`;
}

/** What one command does, its options and examples. */
export function commandHelp(entry: CommandEntry, cli: Cli<SvcContext>, colors: Colors): string {
  const [definition] = cli.definitions();
  const options = (definition?.options ?? []).map(({ definition: name, description = '' }) => ({
    name: shown(name),
    description: description.trim(),
  }));
  // It is gone before a command is parsed.
  options.push({ name: '--no-color', description: 'Prints without colour.' });
  const width = Math.max(...options.map((option) => option.name.length));
  const examples = definition?.examples ?? [];
  return `${[
    `${entry.summary}.`,
    ...(definition?.details ? ['', definition.details.replaceAll(/ +$/gm, '').trim()] : []),
    '',
    `${colors.bold('usage')} ${usageOf(entry, cli)}`,
    '',
    ...options.map(({ name, description }) => `  ${name.padEnd(width)}  ${description}`),
    ...examples.flatMap(([what, command], index) => [
      ...(index === 0 ? ['', colors.bold('examples')] : []),
      `  ${command}`,
      `    ${what.trim()}`,
    ]),
  ].join('\n')}\n`;
}

/** `svc db migrate create <name> [options]`, with the options that must be there. */
export function usageOf(entry: CommandEntry, cli: Cli<SvcContext>): string {
  const [definition] = cli.definitions();
  const required = (definition?.options ?? []).filter((option) => option.required);
  return [
    definition?.usage ?? `svc ${entry.path}`,
    ...required.map((option) => shown(option.definition)),
    '[options]',
  ].join(' ');
}

const shown = (option: string): string => option.replaceAll(',', ', ').replaceAll(/#\d+/g, '<value>');
