import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command, Option } from 'clipanion';
import { writeNewFiles } from '../../../config/new-files.ts';
import { SvcError } from '../../../core/errors.ts';
import { nearest } from '../../../core/nearest.ts';
import { type Answer, SvcCommand } from '../../base.ts';
import { KINDS, type Kind, packageName, pluginPackage } from '../../plugins/package.ts';

const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
const LONGEST = 40;

export default class PluginsNew extends SvcCommand {
  static override paths = [['plugins', 'new']];
  static override usage = Command.Usage({
    description: 'Writes a package for a plugin of yours.',
    details:
      'The package compiles, and its tests are the suite of its kind: each case that fails says what is left to do. It is written into a new folder below this one; nothing is overwritten.',
    examples: [
      ['An engine that svc does not know', 'svc plugins new dialect sqlite'],
      ['A way to a human', 'svc plugins new channel pager'],
      ['A message broker', 'svc plugins new broker nats'],
    ],
  });

  kind = Option.String({ required: true });
  name = Option.String({ required: true });

  async run(): Promise<Answer> {
    const kind = kindOf(this.kind);
    const name = nameOf(this.name);
    const folder = packageName(kind, name);
    const root = process.cwd();
    if (existsSync(join(root, folder))) {
      throw new SvcError('file_exists', `${folder} exists already.`, {
        state: 'Nothing was written.',
        next: ['Choose another name, or move the folder away.'],
        where: join(root, folder),
      });
    }
    const files = pluginPackage(kind, name);
    writeNewFiles(root, files);
    for (const { file } of files) this.print(`created  ${file}`);
    return {
      data: { kind, name, folder, created: files.map(({ file }) => file) },
      nextActions: [`cd ${folder}`, 'npm install', 'npm test'],
    };
  }
}

function kindOf(text: string): Kind {
  const kind = KINDS.find((one) => one === text);
  if (kind) return kind;
  const near = nearest(text, KINDS);
  throw new SvcError('usage', `There is no kind of plugin "${text}" to begin with.`, {
    why: `There are: ${KINDS.join(', ')}.`,
    state: 'Nothing was written.',
    next: near === undefined ? ['svc plugins new --help'] : [`Did you mean "${near}"?`],
  });
}

function nameOf(text: string): string {
  if (NAME.test(text) && text.length <= LONGEST) return text;
  throw new SvcError('usage', `${JSON.stringify(text)} cannot be the name of a plugin.`, {
    why: `A name is at most ${LONGEST} of a-z 0-9 and -, and begins with a letter: the package and what it registers are called by it.`,
    state: 'Nothing was written.',
    next: ['svc plugins new channel pager'],
  });
}
