import { PLUGIN_API_VERSION } from '../../core/kernel.ts';
import { FIELD_TYPES } from '../../core/schema/model.ts';

/** The parts that differ between the kinds of plugin. */
export interface PluginFiles {
  /** Completes the package description "svc …". */
  readonly description: string;
  /** A configuration that uses the plugin. */
  readonly configExample: string;
  /** What is left to implement, in order, if it is in more than one place. */
  readonly steps?: readonly string[];
  /** Paths from the folder of the package. */
  readonly files: Readonly<Record<string, string>>;
}

/** The name as a property of an object. */
export const propertyName = (name: string): string => (name.includes('-') ? `'${name}'` : name);

/** The end of the index of a dialect's package. */
export const registrationOfDialect = (name: string, identifier: string): string => `export default definePlugin({
  name: '${name}',
  api: ${PLUGIN_API_VERSION},
  apply: (kernel) => kernel.dialects.register('${name}', ${identifier}),
});

declare module '@svc/sdk' {
  interface Dialects {
    ${propertyName(name)}: true;
  }
}`;

/** The beginning of the suites of an engine with one file per database: its databases, and its store. */
export const embeddedStore = (
  name: string,
  identifier: string,
): string => `/** Creates an empty database for one case. */
async function createDatabase() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-${name}-'));
  return { url: \`${name}://\${folder}/test.db\`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
}

${storeUnderTest(name, identifier)}`;

/** The store of the databases that `createDatabase` makes. */
export const storeUnderTest = (name: string, identifier: string): string => `const store: StoreUnderTest = {
  name: '${name}',
  async createStore() {
    const { url, drop } = await createDatabase();
    return { connect: () => ${identifier}.connect(url, {}), drop };
  },
};`;

/** What every suite of a dialect says of it. */
export const dialectUnderTest = (name: string, identifier: string): string => `  name: '${name}',
  dialect: ${identifier},
  // Other processes, which the suite starts and kills, load the dialect from here.
  module: new URL(\`../src/index\${extname(import.meta.url)}\`, import.meta.url),
  createDatabase,`;

export function dialectFiles(name: string, identifier: string): PluginFiles {
  return {
    description: `dialect for ${name}: schemas, records and approvals`,
    configExample: `databases: { main: { dialect: '${name}', url: '${name}://<address>' } },`,
    files: { 'src/index.ts': dialectSource(name, identifier), 'test/suite.test.ts': dialectTest(name, identifier) },
  };
}

const dialectSource = (
  name: string,
  identifier: string,
): string => `import { type Connection, type Dialect, definePlugin } from '@svc/sdk';

/** Marks unfinished work; the suite in test/ fails with the message. */
function todo(what: string): never {
  throw new Error(\`To do in src/index.ts: \${what}\`);
}

export const ${identifier}: Dialect = {
  name: '${name}',
  // The engine's name of each type.
  types: {
${FIELD_TYPES.map((type) => `    ${type}: '${type}',`).join('\n')}
  },
  capabilities: {
    // Whether a transaction can roll back DDL together with the history row.
    transactionalDdl: false,
    names: { max: 63, unit: 'bytes' },
    // Unsupported features, each with a reason and an alternative. The suite then expects the error.
    unsupported: {},
  },
  compile: (operation) => todo(\`compile: the statements for \${operation.type}, without connecting\`),
  // The model as the catalog returns it: unchanged, if every type has its own name.
  normalize: (model) => model,
  identify: (url) => todo(\`identify: the database of a \${url.split('://', 1)[0]}:// URL, without credentials\`),
  async connect(_url, _options): Promise<Connection> {
    // For SQL engines: svc plugins new dialect <name> --sql. For engines without tables: --key-value.
    return todo('connect: open the driver and implement run, introspect, records, withLock and the rest of Connection');
  },
};

${registrationOfDialect(name, identifier)}
`;

const dialectTest = (name: string, identifier: string): string => `import { extname } from 'node:path';
import { test } from 'node:test';
import { type DialectUnderTest, dialectSuite, recordStoreSuite, sqlSyntax } from '@svc/sdk/testing';
import { ${identifier} } from '../src/index.ts';

/** Creates an empty database for one case. */
const createDatabase: DialectUnderTest['createDatabase'] = async () => {
  throw new Error('To do in test/suite.test.ts: createDatabase: create a database and return its URL');
};

dialectSuite(test, {
  // For SQL engines. Other engines implement insert, read, clear and raw here.
  ...sqlSyntax((column) => \`"\${column.replaceAll('"', '""')}"\`),
${dialectUnderTest(name, identifier)}
  // To do: add something to a table that a model cannot express: addUnsupportedObject(connection, table) { … }
  // Cases that cannot pass, each with the reason: skip: { '<case>': '<reason>' },
});

// Once these pass, add approvalSuite, which accepts the same argument.
recordStoreSuite(test, {
  name: '${name}',
  async createStore() {
    const { url, drop } = await createDatabase();
    return { connect: () => ${identifier}.connect(url, {}), drop };
  },
});
`;

/** `port` is that of the server that the suite uses. */
export function brokerFiles(name: string, identifier: string, port: number): PluginFiles {
  return {
    description: `broker for requests and decisions over ${name}`,
    configExample: `brokers: { bus: { type: '${name}', url: '${name}://127.0.0.1:${port}' } },`,
    files: { 'src/index.ts': brokerSource(name, identifier), 'test/suite.test.ts': brokerTest(name, identifier, port) },
  };
}

const brokerSource = (
  name: string,
  identifier: string,
): string => `import { type Broker, definePlugin } from '@svc/sdk';
import { reconnectingBroker, urlOption } from '@svc/sdk/broker';

/** The connection of the client library. */
interface Connection {
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

/** Marks unfinished work; the suite in test/ fails with the message. */
function todo(what: string): never {
  throw new Error(\`To do in src/index.ts: \${what}\`);
}

/** Reconnecting, retries, acknowledgements and closing are done by \`reconnectingBroker\`. */
export const ${identifier} = (url: string): Broker =>
  reconnectingBroker<Connection>({
    url,
    /** One connection, which detects a server that no longer responds, and does not reconnect. */
    connect: async () => todo('connect: a connection to the url'),
    closed: (connection) => connection.closed,
    // If the library has no heartbeats: ping: (connection) => connection.…, any question that the server answers.
    /** Resolves once the broker has stored the event; throws if no queue receives it. */
    publish: async (_connection, event, _signal) => todo(\`publish: \${event.name}, confirmed by the broker\`),
    /**
     * Creates the queue and its dead-letter queue, and passes each message to \`receive\`: in a loop that pulls while
     * \`signal\` is not aborted, or by a subscription that is cancelled after \`await stopped\`.
     */
    consume: async (_connection, { queue, signal: _signal, stopped: _stopped, receive: _receive, finished: _finished }) =>
      // await receive({ body, ack: () => …, requeue: () => …, deadLetter: () => … });
      todo(\`consume: \${queue}\`),
    close: (connection) => connection.close(),
  });

export default definePlugin({
  name: '${name}',
  api: ${PLUGIN_API_VERSION},
  apply: (kernel) => kernel.brokers.register('${name}', (options) => ${identifier}(urlOption(options, ['${name}']))),
});
`;

const brokerTest = (name: string, identifier: string, port: number): string => `import { extname } from 'node:path';
import { test } from 'node:test';
import { type BrokerUnderTest, brokerSuite } from '@svc/sdk/testing';
import ${identifier} from '../src/index.ts';

function todo(what: string): never {
  throw new Error(\`To do in test/suite.test.ts: \${what}\`);
}

/** Another client of the same server, which does not use the broker in src. */
const openClient: BrokerUnderTest['openClient'] = async () => {
  // Remove this line once these functions are implemented.
  todo('openClient: connect, and implement the five functions with a client of ${name}');
  return {
    /** Subscribes. The returned function lists the messages so far. */
    async listen(_event) {
      return () => [];
    },
    /** Sends the bytes. Returns false if the queue does not exist; if sending creates it, always true. */
    async send(_queue, _body) {
      return false;
    },
    /** Removes the dead letters of the queue, and returns their bodies. It is polled: lose nothing between two calls. */
    async takeDeadLetters(_queue) {
      return [];
    },
    /** Makes the server refuse events of this name, while it responds: a full queue, a key of another type, a permission. */
    async refuse(_event) {},
    /** Deletes the events and queues of the case, and disconnects. */
    async close(_used) {},
  };
};

brokerSuite(test, {
  name: '${name}',
  plugin: ${identifier},
  type: '${name}',
  // Another process, which the suite starts, loads the broker from here.
  module: new URL(\`../src/index\${extname(import.meta.url)}\`, import.meta.url),
  // A real server.
  server: { host: '127.0.0.1', port: ${port} },
  // With the URL scheme that the client library expects. A server without passwords: choose a user that any password fits.
  options: (host, port) => ({ url: \`${name}://svc:not-a-secret@\${host}:\${port}\` }),
  // No error may contain these.
  secrets: ['not-a-secret'],
  openClient,
  // Restarts the server, to check that messages are durable; skipped without it: restart: async () => { … },
  // Of a server that delivers a message again once its lease is over: leaseMs: 500,
  // How long a case waits before it fails, in milliseconds: longer than a lease and than two heartbeats. Once the broker works,
  // remove it: the default is a minute.
  patienceMs: 30_000,
});
`;
