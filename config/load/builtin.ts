import { providers } from '../../plugins/models/ai-sdk/providers.ts';
import type { BuiltinDialect } from '../define.ts';

export type { OidcProvider, PendingSignIn, SignedIn } from '../../plugins/people/oidc.ts';

type Builtins = Readonly<Record<string, () => Promise<{ readonly default: unknown }>>>;

/** Plugins that need no configuration; each is loaded when one of its names is used. */
export const builtins: Readonly<Record<'dialects' | 'channels' | 'brokers' | 'sealSinks' | 'models', Builtins>> = {
  dialects: {
    cassandra: () => import('../../plugins/dialects/cassandra/dialect.ts'),
    dynamodb: () => import('../../plugins/dialects/dynamodb/dialect.ts'),
    mongodb: () => import('../../plugins/dialects/mongodb/dialect.ts'),
    mariadb: () => import('../../plugins/dialects/mariadb/dialect.ts'),
    mysql: () => import('../../plugins/dialects/mysql/dialect.ts'),
    postgresql: () => import('../../plugins/dialects/postgresql/dialect.ts'),
  } satisfies Record<BuiltinDialect, unknown>,
  channels: {
    broker: () => import('../../plugins/channels/broker.ts'),
    console: () => import('../../plugins/channels/console.ts'),
    webhook: () => import('../../plugins/channels/webhook.ts'),
  },
  brokers: {
    rabbitmq: () => import('../../plugins/brokers/rabbitmq/broker.ts'),
  },
  sealSinks: {
    file: () => import('../../plugins/sinks/file.ts'),
    webhook: () => import('../../plugins/sinks/webhook.ts'),
  },
  models: {
    scripted: () => import('../../plugins/models/scripted.ts'),
    ...Object.fromEntries(
      Object.keys(providers).map((name) => [name, () => import('../../plugins/models/ai-sdk/index.ts')]),
    ),
  },
};

/** Verifies the tokens of a proxy. */
export const loadProxyTokens = () => import('../../plugins/people/proxy-tokens.ts');

/** Verifies the ID tokens of a provider, and signs people in. */
export const loadOidc = () => import('../../plugins/people/oidc.ts');

/** The record store without a configured database. */
export const loadMemoryStore = () => import('../../plugins/stores/memory.ts');
