import type { LanguageModel } from 'ai';
import type { ModelOptions, ModelProvider } from '../../../core/agent/model.ts';
import { SvcError } from '../../../core/errors.ts';
import { loadDriver } from '../../shared/driver.ts';
import { toModelProvider } from './stream-turn.ts';

export interface Provider {
  readonly name: string;
  readonly package: string;
  /** The major version of the package that works with AI SDK 6. */
  readonly major: number;
}

/** Opens a model of an AI SDK provider. Throws `driver_missing`, and `agent_invalid` if it rejects the settings. */
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
  const createProvider = findFactory(module);
  if (!createProvider) {
    throw new SvcError('driver_missing', `${provider.package} is not a provider of AI SDK 6.`, {
      why: 'It exports no create function.',
      next: [`npm install ${provider.package}@${provider.major}`],
    });
  }
  try {
    return toModelProvider(ai, createProvider(settings)(model));
  } catch (error) {
    throw new SvcError('agent_invalid', `The provider "${provider.name}" rejects its settings.`, {
      why: error instanceof Error ? error.message : String(error),
    });
  }
}

type ProviderFactory = (settings: object) => (model: string) => LanguageModel;

/** The export with the shortest name of the form `createOpenAI`. Longer ones are aliases. */
function findFactory(module: Readonly<Record<string, unknown>>): ProviderFactory | undefined {
  const names = Object.keys(module).filter((name) => /^create[A-Z]/.test(name) && typeof module[name] === 'function');
  const [name] = names.sort((a, b) => a.length - b.length);
  return name === undefined ? undefined : (module[name] as ProviderFactory);
}
