import { providers } from '../plugins/models/ai-sdk/providers.ts';

type Builtins = Readonly<Record<string, () => Promise<{ readonly default: unknown }>>>;

/** What needs no line in the configuration: each plugin is loaded when somebody names what it registers. */
export const builtins = {
  dialects: {
    cassandra: () => import('../plugins/dialects/cassandra/index.ts'),
    dynamodb: () => import('../plugins/dialects/dynamodb/index.ts'),
    mongodb: () => import('../plugins/dialects/mongodb/index.ts'),
    mariadb: () => import('../plugins/dialects/mariadb/index.ts'),
    mysql: () => import('../plugins/dialects/mysql/index.ts'),
    postgresql: () => import('../plugins/dialects/postgresql/index.ts'),
  },
  channels: {
    broker: () => import('../plugins/channels/broker/index.ts'),
    console: () => import('../plugins/channels/console/index.ts'),
    webhook: () => import('../plugins/channels/webhook/index.ts'),
  },
  brokers: {
    rabbitmq: () => import('../plugins/brokers/rabbitmq/index.ts'),
  },
  models: {
    scripted: () => import('../plugins/models/scripted.ts'),
    ...Object.fromEntries(
      Object.keys(providers).map((name) => [name, () => import('../plugins/models/ai-sdk/index.ts')]),
    ),
  },
} satisfies Record<string, Builtins>;

/** Where records are kept when no database is named. */
export const loadMemoryStore = () => import('../plugins/stores/memory.ts');
