import type { Cli } from 'clipanion';
import type { SvcContext } from './base.ts';
import { type CommandEntry, table } from './command-list.ts';
import type { Colors } from './output.ts';
import { wrapText } from './wrap-text.ts';

const COMMON_OPTIONS = 'Every command accepts --help, --json, --config <file>, --env <env> and --no-color.';

/** The commands of a group; all of them without words. */
const commandsBelow = (words: readonly string[]): readonly CommandEntry[] => {
  const prefix = words.length === 0 ? '' : `${words.join(' ')} `;
  return table.filter((entry) => entry.path.startsWith(prefix));
};

const groupUsage = (words: readonly string[]): string => ['svc', ...words, '<command> [options]'].join(' ');

/** Whether the words are a group of commands. No words are the group of all commands. */
export const isGroup = (words: readonly string[]): boolean => commandsBelow(words).length > 0;

/** Lists the commands of a group. `columns`: the width of the terminal, which a pipe does not have. */
export function overview(words: readonly string[], colors: Colors, columns: number | undefined): string {
  const rows = commandsBelow(words).map(({ path, summary }) => ({ name: `svc ${path}`, text: summary }));
  return `${[
    `${colors.bold('usage')} ${groupUsage(words)}`,
    '',
    ...twoColumns(rows, columns, colors.bold),
    '',
    ...wrapText(COMMON_OPTIONS, columns),
  ].join('\n')}\n`;
}

/** `overview`, for `--json`. */
export function overviewData(words: readonly string[]): Record<string, unknown> {
  return {
    usage: groupUsage(words),
    commands: commandsBelow(words).map(({ path, summary }) => ({ command: `svc ${path}`, summary })),
  };
}

/** The help of one command: description, usage, options, examples. */
export function commandHelp(
  entry: CommandEntry,
  cli: Cli<SvcContext>,
  colors: Colors,
  columns: number | undefined,
): string {
  const { summary, details, usage, options, examples } = commandHelpData(entry, cli);
  const rows = options.map(({ names, argument, description }) => ({
    name: [names.join(', '), argument].filter(Boolean).join(' '),
    text: description,
  }));
  return `${[
    ...wrapText(`${summary}.`, columns),
    ...(details === null ? [] : ['', ...wrapText(details, columns)]),
    '',
    `${colors.bold('usage')} ${usage}`,
    '',
    ...twoColumns(rows, columns),
    ...examples.flatMap(({ description, command }, index) => [
      ...(index === 0 ? ['', colors.bold('examples')] : []),
      ...wrapText(description, columns, '  '),
      `    ${command}`,
    ]),
  ].join('\n')}\n`;
}

/** Names with their texts in a second column, or below them if the terminal is narrow. */
function twoColumns(
  rows: readonly { readonly name: string; readonly text: string }[],
  columns: number | undefined,
  paint: (text: string) => string = (text) => text,
): string[] {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const isNarrow = columns !== undefined && columns - width < MIN_TEXT_COLUMNS;
  return rows.flatMap(({ name, text }) => {
    if (isNarrow) return [`  ${paint(name)}`, ...wrapText(text, columns, '      ')];
    const [first = '', ...rest] = wrapText(text, columns, ' '.repeat(width + 4));
    return [`  ${paint(name.padEnd(width))}  ${first.trimStart()}`, ...rest];
  });
}

const MIN_TEXT_COLUMNS = 34;

interface CommandHelp {
  readonly command: string;
  readonly summary: string;
  readonly details: string | null;
  readonly usage: string;
  readonly options: readonly {
    readonly names: readonly string[];
    readonly argument: string | null;
    readonly required: boolean;
    readonly description: string;
  }[];
  readonly examples: readonly { readonly description: string; readonly command: string }[];
}

/** `commandHelp`, for `--json`. */
export function commandHelpData(entry: CommandEntry, cli: Cli<SvcContext>): CommandHelp {
  const [definition] = cli.definitions();
  const options = (definition?.options ?? []).map((option) => ({
    ...parseOption(option.definition),
    required: option.required,
    description: (option.description ?? '').trim(),
  }));
  return {
    command: `svc ${entry.path}`,
    summary: entry.summary,
    details: definition?.details ? definition.details.replaceAll(/\s+/g, ' ').trim() : null,
    usage: usageOf(entry, cli),
    options: [
      ...options.filter(({ names }) => !isCommon(names)),
      ...options.filter(({ names }) => isCommon(names)),
      // Removed from the arguments before clipanion parses them.
      { names: ['--no-color'], argument: null, required: false, description: 'Prints without color.' },
      { names: ['-h', '--help'], argument: null, required: false, description: 'Shows this help.' },
    ],
    examples: (definition?.examples ?? []).map(([description, command]) => ({
      description: description.trim(),
      command,
    })),
  };
}

/** The options of every command, which are listed last. */
const isCommon = (names: readonly string[]): boolean => names.some((name) => COMMON_NAMES.has(name));
const COMMON_NAMES: ReadonlySet<string> = new Set(['--json', '--config', '--env']);

/** `svc db migrate create <name> [options]`, including required options. */
export function usageOf(entry: CommandEntry, cli: Cli<SvcContext>): string {
  const [definition] = cli.definitions();
  const required = (definition?.options ?? []).filter((option) => option.required);
  return [
    definition?.usage ?? `svc ${entry.path}`,
    ...required.map((option) => {
      const { names, argument } = parseOption(option.definition);
      return [names.join(', '), argument].filter(Boolean).join(' ');
    }),
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
  '--product': '<name>',
  '--reason': '<text>',
  '--rename': '<old>:<new>',
  '--review-token': '<token>',
  '--set': '<parameter>=<value>',
  '--since': '<date>',
  '--status': '<status>',
  '--to': '<tag>',
  '--wait': '<duration>',
};

/** clipanion writes an option with an argument as `-n,--count #0`. */
function parseOption(option: string): { readonly names: readonly string[]; readonly argument: string | null } {
  const [list = '', argument] = option.split(' ');
  const names = list.split(',');
  return { names, argument: argument === undefined ? null : (PLACEHOLDERS[names.at(-1) ?? ''] ?? '<value>') };
}
