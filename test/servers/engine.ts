/** Every server that tests may need. `usual` are the URLs on which one is looked for when nobody says where it is. */
const FACTS = {
  postgresql: { title: 'PostgreSQL', usual: ['postgresql://postgres@127.0.0.1:5432/postgres'] },
  // Both speak one protocol and want one port: whichever came second took the next.
  mysql: { title: 'MySQL', usual: ['mysql://root@127.0.0.1:3306/', 'mysql://root@127.0.0.1:3307/'] },
  mariadb: { title: 'MariaDB', usual: ['mariadb://root@127.0.0.1:3306/', 'mariadb://root@127.0.0.1:3307/'] },
  mongodb: { title: 'MongoDB', usual: ['mongodb://127.0.0.1:27017/'] },
  dynamodb: { title: 'DynamoDB', usual: ['http://127.0.0.1:8000'] },
  cassandra: { title: 'Cassandra', usual: ['127.0.0.1:9042'] },
  rabbitmq: { title: 'RabbitMQ', usual: ['amqp://guest:guest@127.0.0.1:5672'] },
} as const satisfies Readonly<Record<string, { title: string; usual: readonly string[] }>>;

export type Engine = keyof typeof FACTS;

export const ENGINES = Object.keys(FACTS) as readonly Engine[];

export const isEngine = (name: string): name is Engine => Object.hasOwn(FACTS, name);

export const title = (engine: Engine): string => FACTS[engine].title;

/** With `SVC_TEST_USUAL=off` what runs on usual ports is not for tests, and all servers are started. */
export const usualUrls = (engine: Engine): readonly string[] =>
  process.env.SVC_TEST_USUAL === 'off' ? [] : FACTS[engine].usual;

/** The variable that says where a server is, as in `SVC_TEST_MYSQL_URL`. */
export const variable = (engine: Engine): string => `SVC_TEST_${engine.toUpperCase()}_URL`;
