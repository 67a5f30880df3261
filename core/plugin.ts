import { isSvcError, SvcError } from './errors.ts';
import { isPlainObject } from './json.ts';
import { API, type Kernel, type Plugin } from './kernel.ts';
import { nearest } from './nearest.ts';

/**
 * A plugin. `api` is the version of the contract that it was written for: a package that others install says it as a
 * number, `api: 1`, and is refused by an SDK of another one; without it the plugin is taken to fit the SDK that is there.
 */
export function definePlugin(plugin: Omit<Plugin, 'api'> & { readonly api?: typeof API }): Plugin {
  return { ...plugin, api: plugin.api ?? API };
}

/** What a plugin did to a kernel: `svc plugins list` prints it. */
export interface AppliedPlugin {
  readonly name: string;
  /** Names it registered, by registry. */
  readonly registers: Readonly<Record<string, readonly string[]>>;
  /** How often it taps each hook. */
  readonly taps: Readonly<Record<string, number>>;
}

const REGISTRIES = ['dialects', 'channels', 'brokers', 'models'] as const;

/**
 * Checks what was loaded from `from` and applies it. Throws `plugin_invalid` or `plugin_version` naming the plugin,
 * `name_taken` where two register the same name.
 */
export function applyPlugin(kernel: Kernel, value: unknown, from: string): AppliedPlugin {
  const plugin = checkPlugin(value, from);
  const before = tapCounts(kernel);
  for (const registry of REGISTRIES) kernel[registry].own(plugin.name);
  try {
    plugin.apply(strict(kernel, plugin.name, from));
  } catch (error) {
    if (isSvcError(error)) throw error.where === undefined ? error.with({ where: from }) : error;
    throw new SvcError('plugin_invalid', `The plugin "${plugin.name}" threw while it was applied.`, {
      why: error instanceof Error ? error.message : String(error),
      next: [`Mend the plugin, or remove it from svc.config.`],
      where: from,
      cause: error,
    });
  }
  return { name: plugin.name, registers: registered(kernel, plugin.name), taps: newTaps(before, tapCounts(kernel)) };
}

function checkPlugin(value: unknown, from: string): Plugin {
  const next = ['Export definePlugin({ name, apply(kernel) { … } }) as default.'];
  if (!isPlainObject(value)) {
    throw new SvcError('plugin_invalid', `What "${from}" exports is not a plugin.`, {
      why: `It is ${value === undefined ? 'undefined' : value === null ? 'null' : `a ${typeof value}`} and not an object.`,
      next,
    });
  }
  const { name, api, apply } = value;
  if (typeof name !== 'string' || name === '' || typeof apply !== 'function') {
    throw new SvcError('plugin_invalid', `What "${from}" exports is not a plugin.`, {
      why: typeof apply !== 'function' ? 'It has no function "apply".' : 'It has no "name".',
      next,
    });
  }
  if (api !== API) {
    throw new SvcError('plugin_version', `The plugin "${name}" cannot be used with this SDK.`, {
      why:
        api === undefined
          ? 'It does not say for which version of the plugin contract it was written.'
          : `It was written for version ${String(api)} of the plugin contract; this SDK has version ${API}.`,
      next: api === undefined ? next : fitting(name, api),
      where: from,
    });
  }
  return value as unknown as Plugin;
}

function fitting(name: string, api: unknown): string[] {
  const other = `Install a version of "${name}" that fits this SDK.`;
  return typeof api === 'number' && api > API ? ['Update the SDK: npm install @svc/sdk@latest', other] : [other];
}

/** The kernel as a plugin sees it: a hook or registry that does not exist is refused with those that do. */
function strict(kernel: Kernel, plugin: string, from: string): Kernel {
  const guard = <T extends object>(target: T, kind: string): T =>
    new Proxy(target, {
      get(object, key) {
        if (typeof key === 'symbol' || key in object) return Reflect.get(object, key);
        const names = Object.keys(object);
        const near = nearest(key, names);
        throw new SvcError(
          'plugin_invalid',
          `The plugin "${plugin}" asks for a ${kind} "${key}" that does not exist.`,
          {
            why: `There are: ${names.join(', ')}.`,
            next: near ? [`Did you mean "${near}"?`] : [],
            where: from,
          },
        );
      },
    });
  const hooks = guard(kernel.hooks, 'hook');
  return guard(Object.create(kernel, describe(kernel, hooks)) as Kernel, 'part of the kernel');
}

function describe(kernel: Kernel, hooks: Kernel['hooks']): PropertyDescriptorMap {
  const own: PropertyDescriptorMap = { hooks: { value: hooks, enumerable: true } };
  for (const registry of REGISTRIES) own[registry] = { value: kernel[registry], enumerable: true };
  return own;
}

function registered(kernel: Kernel, plugin: string): AppliedPlugin['registers'] {
  const found: Record<string, string[]> = {};
  for (const registry of REGISTRIES) {
    const names = kernel[registry].list().filter((entry) => entry.plugin === plugin);
    if (names.length > 0) found[registry] = names.map((entry) => entry.name);
  }
  return found;
}

function tapCounts(kernel: Kernel): Map<string, number> {
  return new Map(Object.entries(kernel.hooks).map(([name, hook]) => [name, hook.taps.length]));
}

function newTaps(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): AppliedPlugin['taps'] {
  const found: Record<string, number> = {};
  for (const [hook, count] of after) {
    const more = count - (before.get(hook) ?? 0);
    if (more > 0) found[hook] = more;
  }
  return found;
}
