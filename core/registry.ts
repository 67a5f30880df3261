import { SvcError } from './errors.ts';
import { nearest } from './nearest.ts';

/** Values that plugins register by name. The owner of each is listed by `svc plugins list`. */
export interface Registry<T> {
  readonly kind: string;
  /** Sets the plugin that owns all further registrations. */
  setOwner(plugin: string): void;
  register(name: string, value: T): void;
  has(name: string): boolean;
  get(name: string): T;
  /** Names with the plugin that registered each. */
  list(): { readonly name: string; readonly plugin: string }[];
}

export class OwnedRegistry<T> implements Registry<T> {
  readonly #entries = new Map<string, { readonly value: T; readonly plugin: string }>();
  readonly kind: string;
  #owner = '';

  constructor(kind: string) {
    this.kind = kind;
  }

  setOwner(plugin: string): void {
    this.#owner = plugin;
  }

  register(name: string, value: T): void {
    const taken = this.#entries.get(name);
    if (taken) {
      throw new SvcError('name_taken', `The ${this.kind} "${name}" is registered twice.`, {
        why:
          taken.plugin === this.#owner
            ? `The plugin "${taken.plugin}" registers it a second time.`
            : `The plugins "${taken.plugin}" and "${this.#owner}" both register it.`,
        next: [
          taken.plugin === this.#owner
            ? 'Fix the plugin, or remove it from svc.config.'
            : 'Remove one of the two plugins from svc.config.',
        ],
      });
    }
    this.#entries.set(name, { value, plugin: this.#owner });
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  get(name: string): T {
    const entry = this.#entries.get(name);
    if (entry) return entry.value;
    const near = nearest(name, [...this.#entries.keys()]);
    throw new SvcError('name_unknown', `No ${this.kind} is named "${name}".`, {
      why: `Known: ${[...this.#entries.keys()].join(', ') || 'none'}.`,
      next: near ? [`Did you mean "${near}"?`] : [`Add the plugin that registers the ${this.kind} to svc.config.`],
    });
  }

  list(): { readonly name: string; readonly plugin: string }[] {
    return [...this.#entries].map(([name, { plugin }]) => ({ name, plugin }));
  }
}
