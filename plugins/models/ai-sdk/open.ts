import type { LanguageModel } from 'ai';
import type { ModelOptions, ModelProvider } from '../../../core/agent/model.ts';
import { SvcError } from '../../../core/errors.ts';
import { loadDriver } from '../../driver.ts';
import { bridge } from './bridge.ts';

export interface Provider {
  readonly name: string;
  readonly package: string;
  /** Of the package, that goes with AI SDK 6. */
  readonly major: number;
}

/** A model of an AI SDK provider. Throws `driver_missing`, and `agent_invalid` for settings it refuses. */
export async function openModel(provider: Provider, { model, settings }: ModelOptions): Promise<ModelProvider> {
  const ai = await loadDriver({
    name: 'The AI SDK',
    package: `ai@6 ${provider.package}@${provider.major}`,
    module: 'ai',
    load: () => import('ai'),
  });
  const module = await loadDriver<Readonly<Record<string, unknown>>>({
    name: `The provider "${provider.name}" of the AI SDK`,
    package: `${provider.package}@${provider.major}`,
    module: provider.package,
    load: () => import(provider.package),
  });
  const create = maker(module);
  if (!create) {
    throw new SvcError('driver_missing', `${provider.package} is not a provider of AI SDK 6.`, {
      why: 'It exports no function that makes one.',
      next: [`npm install ${provider.package}@${provider.major}`],
    });
  }
  try {
    return bridge(ai, create(settings)(model));
  } catch (error) {
    throw new SvcError('agent_invalid', `The provider "${provider.name}" refuses its settings.`, {
      why: error instanceof Error ? error.message : String(error),
    });
  }
}

type Maker = (settings: object) => (model: string) => LanguageModel;

/** `createOpenAI`, `createAnthropic`: the shortest of its makers; others are aliases. */
function maker(module: Readonly<Record<string, unknown>>): Maker | undefined {
  const names = Object.keys(module).filter((name) => /^create[A-Z]/.test(name) && typeof module[name] === 'function');
  const [name] = names.sort((a, b) => a.length - b.length);
  return name === undefined ? undefined : (module[name] as Maker);
}
