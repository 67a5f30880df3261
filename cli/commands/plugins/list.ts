import { Command } from 'clipanion';
import { type CommandResult, SvcCommand } from '../../base.ts';

export default class PluginsList extends SvcCommand {
  static override paths = [['plugins', 'list']];
  static override usage = Command.Usage({
    description: 'Lists loaded plugins, their source and what they register.',
    examples: [
      ['Configured plugins, and the built-in ones that the configuration uses', 'svc plugins list'],
      ['As JSON', 'svc plugins list --json'],
    ],
  });

  async run(): Promise<CommandResult> {
    const runtime = await this.runtime();
    const plugins = await runtime.plugins();
    if (plugins.length === 0)
      this.note('No plugins are loaded: the configuration has no plugins, databases, channels or brokers.');
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
