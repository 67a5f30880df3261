import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { Command } from 'clipanion';
import { environments } from '../../config/env.ts';
import { LINK_FILE } from '../../config/link.ts';
import { SvcError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { type Answer, SvcCommand } from '../base.ts';

export default class Link extends SvcCommand {
  static override paths = [['link']];
  static override usage = Command.Usage({
    description: 'Ties this folder to an environment.',
    details: `Writes ${LINK_FILE} beside the configuration. Commands then mean that environment, unless --env says another.`,
    examples: [['Work on staging from now on', 'svc link --env staging']],
  });

  async run(): Promise<Answer> {
    const { env } = this;
    if (env === undefined) {
      throw new SvcError('usage', 'svc link needs the environment.', { next: ['svc link --env <env>'] });
    }
    const { root, product, config } = await this.runtime();
    const known = environments(config);
    if (known.length > 0 && !known.includes(env)) {
      const near = nearest(env, known);
      throw new SvcError('env_unknown', `No database has a URL for the environment "${env}".`, {
        why: `The configuration knows ${known.join(', ')}.`,
        next: near === undefined ? ['Add a URL for it to the configuration.'] : [`svc link --env ${near}`],
      });
    }
    const file = join(root, LINK_FILE);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(`${file}.${process.pid}`, `${JSON.stringify({ product, env }, null, 2)}\n`);
    renameSync(`${file}.${process.pid}`, file);
    this.print(`Linked ${relative(process.cwd(), root) || '.'} to ${env} of ${product}.`);
    return { data: { product, env, file }, nextActions: ['svc doctor'] };
  }
}
