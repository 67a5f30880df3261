import { join } from 'node:path';
import { SvcError } from '../core/errors.ts';
import type { Kernel } from '../core/kernel.ts';
import { nearest } from '../core/nearest.ts';
import { type AppliedPlugin, applyPlugin } from '../core/plugin.ts';
import { builtinDialects } from './builtin.ts';
import type { Config } from './define.ts';
import { type Import, importer } from './import.ts';

export interface LoadedPlugin extends AppliedPlugin {
  /** `built in`, `svc.config`, or the package or path the configuration names. */
  readonly from: string;
}

/** The plugins of one configuration on one kernel, each loaded once and when it is needed. */
export class PluginHost {
  readonly #config: Config;
  readonly #import: Import;
  readonly #loaded: LoadedPlugin[] = [];
  readonly #builtins = new Map<string, Promise<void>>();
  #kernel: Promise<Kernel> | undefined;

  /** `base` is the config file, or a folder for a configuration in code: names and paths resolve from there. */
  constructor(config: Config, base: { readonly file?: string; readonly root: string }) {
    this.#config = config;
    this.#import = importer(base.file ?? join(base.root, 'svc.config.ts'));
  }

  get loaded(): readonly LoadedPlugin[] {
    return this.#loaded;
  }

  /** The kernel with the plugins of the configuration on it, in its order. */
  kernel(): Promise<Kernel> {
    this.#kernel ??= this.#start();
    return this.#kernel;
  }

  /** The kernel with a dialect of that name on it: the configuration's own plugins come before the built-in ones. */
  async withDialect(name: string): Promise<Kernel> {
    const kernel = await this.kernel();
    if (kernel.dialects.has(name)) return kernel;
    const load = Object.hasOwn(builtinDialects, name) ? builtinDialects[name] : undefined;
    if (!load) throw dialectUnknown(name, kernel);
    const loading =
      this.#builtins.get(name) ?? load().then((module) => this.#apply(kernel, module.default, 'built in'));
    this.#builtins.set(name, loading);
    await loading;
    return kernel;
  }

  async #start(): Promise<Kernel> {
    const { Kernel } = await import('../core/kernel.ts');
    const kernel = new Kernel();
    for (const plugin of this.#config.plugins ?? []) {
      if (typeof plugin === 'string') this.#apply(kernel, await this.#load(plugin), plugin);
      else this.#apply(kernel, plugin, 'svc.config');
    }
    return kernel;
  }

  #apply(kernel: Kernel, plugin: unknown, from: string): void {
    this.#loaded.push({ ...applyPlugin(kernel, plugin, from), from });
  }

  async #load(specifier: string): Promise<unknown> {
    try {
      return (await this.#import(specifier)).default;
    } catch (error) {
      throw new SvcError('plugin_invalid', `The plugin "${specifier}" cannot be loaded.`, {
        why: (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '',
        next: /^[./]/.test(specifier)
          ? ['Paths of plugins start at the folder of the configuration.']
          : [`npm install ${specifier}`],
        where: specifier,
        cause: error,
      });
    }
  }
}

function dialectUnknown(name: string, kernel: Kernel): SvcError {
  const names = [...new Set([...Object.keys(builtinDialects), ...kernel.dialects.list().map((entry) => entry.name)])];
  const near = nearest(name, names);
  return new SvcError('name_unknown', `No dialect is named "${name}".`, {
    why: `Known: ${names.join(', ')}.`,
    next: near ? [`Did you mean "${near}"?`] : ['Add the plugin that registers the dialect to svc.config.'],
  });
}
