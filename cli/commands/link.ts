import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { Command } from 'clipanion';
import { configuredEnvs, LINK_FILE } from '../../config/load/env.ts';
import { SvcError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { type CommandResult, SvcCommand } from '../base.ts';

export default class Link extends SvcCommand {
  static override paths = [['link']];
  static override usage = Command.Usage({
    description: 'Links this folder to an environment.',
    details: `Writes ${LINK_FILE} next to the configuration. Commands then use that environment, unless --env specifies another.`,
    examples: [['Use staging', 'svc link --env staging']],
  });

  async run(): Promise<CommandResult> {
    const { env } = this;
    if (env === undefined) {
      throw new SvcError('usage', 'svc link needs an environment.', { next: ['svc link --env <env>'] });
    }
    const { root, product, config } = await this.runtime();
    const known = configuredEnvs(config);
    if (known.length > 0 && !known.includes(env)) {
      const near = nearest(env, known);
      throw new SvcError('env_unknown', `No database has a URL for the environment "${env}".`, {
        why: `Configured: ${known.join(', ')}.`,
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
