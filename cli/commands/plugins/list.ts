import { Command } from 'clipanion';
import { type Answer, SvcCommand } from '../../base.ts';

export default class PluginsList extends SvcCommand {
  static override paths = [['plugins', 'list']];
  static override usage = Command.Usage({
    description: 'Lists what is loaded, from where, and what it registers.',
    examples: [
      ['Plugins of the configuration, and the dialects its databases name', 'svc plugins list'],
      ['For programs', 'svc plugins list --json'],
    ],
  });

  async run(): Promise<Answer> {
    const runtime = await this.runtime();
    const plugins = await runtime.plugins();
    if (plugins.length === 0) this.note('No plugin is loaded: the configuration names none, and no database.');
    for (const { name, from, registers, taps } of plugins) {
      this.print(`${this.colors.bold(name)}  ${from}`);
      for (const [registry, names] of Object.entries(registers))
        this.print(`  registers ${registry}: ${names.join(', ')}`);
      const tapped = Object.entries(taps).map(([hook, count]) => (count === 1 ? hook : `${hook} (${count})`));
      if (tapped.length > 0) this.print(`  taps ${tapped.join(', ')}`);
    }
    return { data: { plugins } };
  }
}
