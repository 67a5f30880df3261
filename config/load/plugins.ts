import { join } from 'node:path';
import { errorMessage, SvcError } from '../../core/errors.ts';
import type { Kernel } from '../../core/kernel.ts';
import { nearest } from '../../core/nearest.ts';
import { type AppliedPlugin, applyPlugin } from '../../core/plugin.ts';
import type { Registry } from '../../core/registry.ts';
import type { Config } from '../define.ts';
import { builtins } from './builtin.ts';
import { type Import, importer, type LoadSdk } from './import-module.ts';

export interface LoadedPlugin extends AppliedPlugin {
  /** `built in`, `svc.config`, or the package or path in the configuration. */
  readonly from: string;
}

type Registered<K extends keyof typeof builtins> = ReturnType<Kernel[K]['get']>;

/** Loads the plugins of one configuration into one kernel, each once and on first use. */
export class PluginHost {
  readonly #config: Config;
  readonly #import: Import;
  readonly #loaded: LoadedPlugin[] = [];
  readonly #applied = new Set<unknown>();
  #kernel: Promise<Kernel> | undefined;

  /** Package names and paths resolve from `base`: the config file, or a folder for a configuration in code. */
  constructor(config: Config, base: { readonly file?: string; readonly root: string }, loadSdk: LoadSdk) {
    this.#config = config;
    this.#import = importer(base.file ?? join(base.root, 'svc.config.ts'), loadSdk);
  }

  get loaded(): readonly LoadedPlugin[] {
    return this.#loaded;
  }

  /** Returns the kernel with the configured plugins applied, in their order. */
  kernel(): Promise<Kernel> {
    this.#kernel ??= this.#start();
    return this.#kernel;
  }

  /** Returns the value that a configured or built-in plugin registers under a name. Throws `name_unknown`. */
  async find<K extends keyof typeof builtins>(registry: K, name: string): Promise<Registered<K>> {
    const kernel = await this.kernel();
    const entries: Pick<Registry<unknown>, 'has' | 'get' | 'kind' | 'list'> = kernel[registry];
    if (!entries.has(name)) await this.#applyBuiltin(kernel, entries, builtins[registry], name);
    return entries.get(name) as Registered<K>;
  }

  /** The names that configured and built-in plugins register. Loads no built-in plugin. */
  async names(registry: keyof typeof builtins): Promise<readonly string[]> {
    return allNames((await this.kernel())[registry], Object.keys(builtins[registry]));
  }

  async #applyBuiltin(
    kernel: Kernel,
    registry: Pick<Registry<unknown>, 'kind' | 'list'>,
    builtin: Readonly<Record<string, () => Promise<{ readonly default: unknown }>>>,
    name: string,
  ): Promise<void> {
    const load = Object.hasOwn(builtin, name) ? builtin[name] : undefined;
    if (!load) throw unknownNameError(name, registry, Object.keys(builtin));
    const { default: plugin } = await load();
    // One plugin may register several names.
    if (this.#applied.has(plugin)) return;
    this.#applied.add(plugin);
    this.#apply(kernel, plugin, 'built in');
  }

  async #start(): Promise<Kernel> {
    const { Kernel } = await import('../../core/kernel.ts');
    const kernel = new Kernel();
    for (const plugin of this.#config.plugins ?? []) {
      if (typeof plugin === 'string') this.#apply(kernel, await this.#load(plugin), plugin);
      else this.#apply(kernel, plugin, 'svc.config');
    }
    return kernel;
  }

  #apply(kernel: Kernel, plugin: unknown, from: string): void {
    const applied = applyPlugin(kernel, plugin, from);
    const same = this.#loaded.find(({ name }) => name === applied.name);
    if (same) {
      // It would tap its hooks twice.
      throw new SvcError('name_taken', `Two plugins are named "${applied.name}".`, {
        why: same.from === from ? `Both come from ${from}.` : `One comes from ${same.from}, the other from ${from}.`,
        next: ['Remove one of the two from svc.config.'],
        where: from,
      });
    }
    this.#loaded.push({ ...applied, from });
  }

  async #load(specifier: string): Promise<unknown> {
    try {
      return (await this.#import(specifier)).default;
    } catch (error) {
      throw new SvcError('plugin_invalid', `The plugin "${specifier}" cannot be loaded.`, {
        why: (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '',
        next: [remedy(specifier, error)],
        where: specifier,
        cause: error,
      });
    }
  }
}

/** A plugin that exists may throw while it is loaded, or import something that does not exist. */
function remedy(specifier: string, error: unknown): string {
  const isMissing = /^Cannot find (?:module|package) '(.*?)'/
    .exec(errorMessage(error))?.[1]
    ?.endsWith(specifier.replace(/^[./]+/, ''));
  if (!isMissing) return 'Fix the plugin, or remove it from svc.config.';
  if (/^[./]/.test(specifier)) return 'Plugin paths are relative to the folder of the configuration.';
  const [name] = /^(?:@[^/]+\/)?[^/]+/.exec(specifier) ?? [specifier];
  return `npm install ${name}`;
}

const allNames = (registry: Pick<Registry<unknown>, 'list'>, builtin: readonly string[]): readonly string[] => [
  ...new Set([...builtin, ...registry.list().map(({ name }) => name)]),
];

function unknownNameError(
  name: string,
  registry: Pick<Registry<unknown>, 'kind' | 'list'>,
  builtin: readonly string[],
): SvcError {
  const { kind } = registry;
  const names = allNames(registry, builtin);
  const near = nearest(name, names);
  return new SvcError('name_unknown', `No ${kind} is named "${name}".`, {
    why: `Available: ${names.join(', ')}.`,
    next: near ? [`Did you mean "${near}"?`] : [`Add the plugin that registers the ${kind} to svc.config.`],
  });
}
