import { isSvcError, SvcError } from './errors.ts';
import { isPlainObject } from './json.ts';
import { type Kernel, PLUGIN_API_VERSION, type Plugin } from './kernel.ts';
import { nearest } from './nearest.ts';

/**
 * Defines a plugin. `api` is the version of the plugin contract it was written for. A published package sets it to a
 * number, such as `api: 1`, and an SDK with another version rejects it. The default is the version of this SDK.
 */
export function definePlugin(plugin: Omit<Plugin, 'api'> & { readonly api?: typeof PLUGIN_API_VERSION }): Plugin {
  return { ...plugin, api: plugin.api ?? PLUGIN_API_VERSION };
}

/** The registrations of a plugin. Printed by `svc plugins list`. */
export interface AppliedPlugin {
  readonly name: string;
  /** Registered names by registry. */
  readonly registers: Readonly<Record<string, readonly string[]>>;
  /** Number of taps by hook. */
  readonly taps: Readonly<Record<string, number>>;
}

const REGISTRIES = ['dialects', 'channels', 'brokers', 'sealSinks', 'models', 'lintRules'] as const;

/**
 * Validates and applies a plugin loaded from `from`. Throws `plugin_invalid`, `plugin_version`, or `name_taken` if two
 * plugins register the same name.
 */
export function applyPlugin(kernel: Kernel, value: unknown, from: string): AppliedPlugin {
  const plugin = assertPlugin(value, from);
  const before = tapCounts(kernel);
  for (const registry of REGISTRIES) kernel[registry].setOwner(plugin.name);
  try {
    plugin.apply(guardedKernel(kernel, plugin.name, from));
  } catch (error) {
    if (isSvcError(error)) throw error.where === undefined ? error.with({ where: from }) : error;
    throw new SvcError('plugin_invalid', `The plugin "${plugin.name}" threw an error while it was applied.`, {
      why: error instanceof Error ? error.message : String(error),
      next: ['Fix the plugin, or remove it from svc.config.'],
      where: from,
      cause: error,
    });
  }
  return {
    name: plugin.name,
    registers: registrations(kernel, plugin.name),
    taps: addedTaps(before, tapCounts(kernel)),
  };
}

function assertPlugin(value: unknown, from: string): Plugin {
  const next = ['Export definePlugin({ name, apply(kernel) { … } }) as default.'];
  if (!isPlainObject(value)) {
    throw new SvcError('plugin_invalid', `The default export of "${from}" is not a plugin.`, {
      why: `It is ${value === undefined ? 'undefined' : value === null ? 'null' : `a ${typeof value}`}, not an object.`,
      next,
    });
  }
  const { name, api, apply } = value;
  if (typeof name !== 'string' || name === '' || typeof apply !== 'function') {
    throw new SvcError('plugin_invalid', `The default export of "${from}" is not a plugin.`, {
      why: typeof apply !== 'function' ? 'It has no function "apply".' : 'It has no "name".',
      next,
    });
  }
  if (api !== PLUGIN_API_VERSION) {
    throw new SvcError('plugin_version', `The plugin "${name}" cannot be used with this SDK.`, {
      why:
        api === undefined
          ? 'It does not specify the version of the plugin contract it was written for.'
          : `It was written for version ${String(api)} of the plugin contract; this SDK has version ${PLUGIN_API_VERSION}.`,
      next: api === undefined ? next : upgradeSteps(name, api),
      where: from,
    });
  }
  // The three properties were checked above.
  return value as unknown as Plugin;
}

function upgradeSteps(name: string, api: unknown): string[] {
  const other = `Install a version of "${name}" that fits this SDK.`;
  return typeof api === 'number' && api > PLUGIN_API_VERSION
    ? ['Update the SDK: npm install @svc/sdk@latest', other]
    : [other];
}

/** The kernel passed to a plugin: access to an unknown hook or registry throws an error that lists the known ones. */
function guardedKernel(kernel: Kernel, plugin: string, from: string): Kernel {
  const guard = <T extends object>(target: T, kind: string): T =>
    new Proxy(target, {
      get(object, key) {
        if (typeof key === 'symbol' || key in object) return Reflect.get(object, key);
        const names = Object.keys(object);
        const near = nearest(key, names);
        throw new SvcError(
          'plugin_invalid',
          `The plugin "${plugin}" uses the ${kind} "${key}", which does not exist.`,
          {
            why: `Known: ${names.join(', ')}.`,
            next: near ? [`Did you mean "${near}"?`] : [],
            where: from,
          },
        );
      },
    });
  const hooks = guard(kernel.hooks, 'hook');
  return guard(Object.create(kernel, kernelProperties(kernel, hooks)) as Kernel, 'part of the kernel');
}

function kernelProperties(kernel: Kernel, hooks: Kernel['hooks']): PropertyDescriptorMap {
  const own: PropertyDescriptorMap = { hooks: { value: hooks, enumerable: true } };
  for (const registry of REGISTRIES) own[registry] = { value: kernel[registry], enumerable: true };
  return own;
}

function registrations(kernel: Kernel, plugin: string): AppliedPlugin['registers'] {
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

function addedTaps(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): AppliedPlugin['taps'] {
  const found: Record<string, number> = {};
  for (const [hook, count] of after) {
    const more = count - (before.get(hook) ?? 0);
    if (more > 0) found[hook] = more;
  }
  return found;
}
