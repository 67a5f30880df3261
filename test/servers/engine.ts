/** Every server that tests may need, and the URLs where one is looked for if none is configured. */
const FACTS = {
  postgresql: { title: 'PostgreSQL', defaultUrls: ['postgresql://postgres@127.0.0.1:5432/postgres'] },
  // Both use one protocol and one default port: the second to start takes the next port.
  mysql: { title: 'MySQL', defaultUrls: ['mysql://root@127.0.0.1:3306/', 'mysql://root@127.0.0.1:3307/'] },
  mariadb: { title: 'MariaDB', defaultUrls: ['mariadb://root@127.0.0.1:3306/', 'mariadb://root@127.0.0.1:3307/'] },
  mongodb: { title: 'MongoDB', defaultUrls: ['mongodb://127.0.0.1:27017/'] },
  dynamodb: { title: 'DynamoDB', defaultUrls: ['http://127.0.0.1:8000'] },
  cassandra: { title: 'Cassandra', defaultUrls: ['127.0.0.1:9042'] },
  rabbitmq: { title: 'RabbitMQ', defaultUrls: ['amqp://guest:guest@127.0.0.1:5672'] },
} as const satisfies Readonly<Record<string, { title: string; defaultUrls: readonly string[] }>>;

export type Engine = keyof typeof FACTS;

export const ENGINES = Object.keys(FACTS) as readonly Engine[];

export const isEngine = (name: string): name is Engine => Object.hasOwn(FACTS, name);

export const title = (engine: Engine): string => FACTS[engine].title;

/** With `SVC_TEST_USUAL=off` servers on default ports are ignored, and all servers are started. */
export const defaultUrls = (engine: Engine): readonly string[] =>
  process.env.SVC_TEST_USUAL === 'off' ? [] : FACTS[engine].defaultUrls;

/** The environment variable with a server's URL, such as `SVC_TEST_MYSQL_URL`. */
export const urlVariable = (engine: Engine): string => `SVC_TEST_${engine.toUpperCase()}_URL`;
