import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command, Option } from 'clipanion';
import { writeNewFiles } from '../../../config/project/write-files.ts';
import { SvcError } from '../../../core/errors.ts';
import { nearest } from '../../../core/nearest.ts';
import { type CommandResult, SvcCommand } from '../../base.ts';
import {
  type DialectParts,
  KINDS,
  type Kind,
  type PluginRequest,
  packageName,
  pluginPackage,
} from '../../plugins/package.ts';
import { promptText } from '../../prompt.ts';

const PARTS: readonly DialectParts[] = ['sql', 'sql-server', 'key-value', 'key-value-server'];
const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
const MAX_LENGTH = 40;
const MAX_PORT = 65_535;

const EXAMPLES = {
  '--sql': 'svc plugins new dialect duckdb --sql',
  '--sql-server': 'svc plugins new dialect firebird --sql-server',
  '--key-value': 'svc plugins new dialect lmdb --key-value',
  '--key-value-server': 'svc plugins new dialect etcd --key-value-server',
  '--port': 'svc plugins new broker nats --port 4222',
} as const;

export default class PluginsNew extends SvcCommand {
  static override paths = [['plugins', 'new']];
  static override usage = Command.Usage({
    description: 'Creates a package for a dialect, channel or broker.',
    details:
      'The package compiles, and its tests run the suite for its kind: each failing case describes the work left to do. A channel passes at once, with buttons and a service that its tests simulate. It is written to a new folder in the current one.',
    examples: [
      ['A dialect for another engine', 'svc plugins new dialect sqlite'],
      ['A dialect for an SQL engine with one file per database', EXAMPLES['--sql']],
      ['A dialect for an SQL engine with a server', EXAMPLES['--sql-server']],
      ['A dialect for a key-value engine with one file per database', EXAMPLES['--key-value']],
      ['A dialect for a key-value engine with a server', EXAMPLES['--key-value-server']],
      ['A channel to reviewers', 'svc plugins new channel pager'],
      ['A message broker', EXAMPLES['--port']],
    ],
  });

  kind = Option.String({ required: true });
  name = Option.String({ required: true });
  sql = Option.Boolean('--sql', false, {
    description: 'Of a dialect: starts with the parts that SQL dialects share, laid out for an embedded engine.',
  });
  sqlServer = Option.Boolean('--sql-server', false, {
    description: 'Of a dialect: starts with the parts that SQL dialects share, laid out for an engine with a server.',
  });
  keyValue = Option.Boolean('--key-value', false, {
    description: 'Of a dialect: starts with the parts for an engine without tables, laid out for an embedded engine.',
  });
  keyValueServer = Option.Boolean('--key-value-server', false, {
    description:
      'Of a dialect: starts with the parts for an engine without tables, laid out for a server with ordered keys.',
  });
  port = Option.String('--port', {
    description: 'Of a broker: the port of its server on 127.0.0.1, for the tests. Prompted for by default.',
  });

  async run(): Promise<CommandResult> {
    const kind = kindOf(this.kind);
    const name = nameOf(this.name, kind);
    const folder = packageName(kind, name);
    const root = process.cwd();
    if (existsSync(join(root, folder))) {
      throw new SvcError('file_exists', `${folder} already exists.`, {
        state: 'Nothing was written.',
        next: ['Choose another name, or move the folder away.'],
        where: join(root, folder),
      });
    }
    const files = pluginPackage(await this.#request(kind, name), name, root);
    writeNewFiles(root, files);
    for (const { file } of files) this.print(`created  ${file}`);
    return {
      data: { kind, name, folder, created: files.map(({ file }) => file) },
      nextActions: [`cd ${folder}`, 'npm install', 'npm test'],
    };
  }

  async #request(kind: Kind, name: string): Promise<PluginRequest> {
    const isChosen = {
      sql: this.sql,
      'sql-server': this.sqlServer,
      'key-value': this.keyValue,
      'key-value-server': this.keyValueServer,
    };
    const chosen = PARTS.filter((one) => isChosen[one]);
    const [parts] = chosen;
    if (parts && kind !== 'dialect') throw misplaced(`--${parts}`, kind);
    if (chosen.length > 1) {
      throw new SvcError('usage', `${chosen.map((one) => `--${one}`).join(' and ')} exclude each other.`, {
        state: 'Nothing was written.',
        next: chosen.map((one) => EXAMPLES[`--${one}`]),
      });
    }
    if (this.port !== undefined && kind !== 'broker') throw misplaced('--port', kind);
    switch (kind) {
      case 'dialect':
        return { kind, parts };
      case 'channel':
        return { kind };
      case 'broker':
        return { kind, port: portOf(this.port ?? (await this.#promptPort(name)), name) };
    }
  }

  async #promptPort(name: string): Promise<string> {
    const message = `The port of the ${name} server for the tests`;
    return (await promptText(this, { message, flag: `svc plugins new broker ${name} --port <port>` })) ?? '';
  }
}

function misplaced(flag: keyof typeof EXAMPLES, kind: Kind): SvcError {
  return new SvcError('usage', `${flag} is not for a ${kind}.`, {
    state: 'Nothing was written.',
    next: [EXAMPLES[flag]],
  });
}

function portOf(text: string, broker: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port >= 1 && port <= MAX_PORT) return port;
  throw new SvcError('usage', `${JSON.stringify(text)} is not a port.`, {
    why: `A port is a number from 1 to ${MAX_PORT}.`,
    state: 'Nothing was written.',
    next: [`svc plugins new broker ${broker} --port 4222`],
  });
}

function kindOf(text: string): Kind {
  const kind = KINDS.find((one) => one === text);
  if (kind) return kind;
  const near = nearest(text, KINDS);
  throw new SvcError('usage', `"${text}" is not a kind of plugin.`, {
    why: `The kinds are: ${KINDS.join(', ')}.`,
    state: 'Nothing was written.',
    next: near === undefined ? ['svc plugins new --help'] : [`Did you mean "${near}"?`],
  });
}

function nameOf(text: string, kind: Kind): string {
  if (NAME.test(text) && text.length <= MAX_LENGTH) return text;
  throw new SvcError('usage', `${JSON.stringify(text)} is not a valid plugin name.`, {
    why: `A name has at most ${MAX_LENGTH} characters of a-z 0-9 and -, and starts with a letter. The package and its registration use it.`,
    state: 'Nothing was written.',
    next: [`svc plugins new ${kind} ${kind === 'dialect' ? 'lmdb' : 'pager'}`],
  });
}
