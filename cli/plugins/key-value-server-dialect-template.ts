import { dialectUnderTest, type PluginFiles, registrationOfDialect, storeUnderTest } from './templates.ts';

/** A dialect from an `OrderedKeyServer`, for a key-value engine with a server. */
export function keyValueServerDialectFiles(name: string, identifier: string): PluginFiles {
  const variable = `${name.toUpperCase().replaceAll('-', '_')}_URL`;
  const server = `${name}://127.0.0.1:<port>`;
  return {
    description: `dialect for ${name}: schemas, records and approvals`,
    configExample: `databases: { main: { dialect: '${name}', url: '${name}://127.0.0.1/shop' } },`,
    steps: [
      `a server for the tests, on this machine: \`export ${variable}=${server}\``,
      '`openServer` in `src/server.ts`: the driver, which is also a dependency in `package.json`, and the functions of an `OrderedKeyServer`',
      'the messages in `src/errors.ts`',
      'reasons of the engine for what it does not support: `unsupported` in `src/index.ts`',
      '`drop` and the skipped cases in `test/suite.test.ts`',
    ],
    files: {
      'src/index.ts': indexSource(name, identifier),
      'src/server.ts': serverSource(name),
      'src/errors.ts': errorsSource(name),
      'test/suite.test.ts': suiteTest(name, identifier, variable, server),
    },
  };
}

const indexSource = (name: string, identifier: string): string => `import { definePlugin, SvcError } from '@svc/sdk';
import {
  connectTimeoutMs,
  keyValueDialect,
  orderedKeyDriver,
  readSettings,
  UNSUPPORTED_BY_KEY_VALUE,
} from '@svc/sdk/dialect';
import { toSvcError } from './errors.ts';
import { openServer } from './server.ts';

export const ${identifier} = keyValueDialect({
  name: '${name}',
  // With reasons of the engine: index: { why: '…', next: '…' }.
  unsupported: { ...UNSUPPORTED_BY_KEY_VALUE },
  // The physical database, without credentials. To do: the default port of the server.
  identify(url) {
    const { protocol, hostname, port, pathname } = URL.canParse(url) ? new URL(url) : new URL('unknown:');
    if (protocol === '${name}:' && hostname !== '') return \`${name}:\${hostname}:\${port || '1234'}\${pathname}\`;
    throw new SvcError('url_invalid', 'The URL of the ${name} database is invalid.', {
      next: ['Use the form ${name}://user:password@host:1234/database.'],
    });
  },
  // An engine without ordered keys has a KeyValueDriver of its own in place of orderedKeyDriver.
  async open(url, options) {
    // With options of the database: { connectTimeoutMs, tls: booleanOption('…', false) }.
    const settings = readSettings('${name}', { connectTimeoutMs }, options);
    const opening = openServer(url, settings.connectTimeoutMs);
    return orderedKeyDriver(
      await opening.catch((error) => {
        throw toSvcError(error);
      }),
    );
  },
});

${registrationOfDialect(name, identifier)}
`;

const serverSource = (name: string): string => `import type { OrderedKeyServer } from '@svc/sdk/dialect';
import { toSvcError } from './errors.ts';

/** Marks unfinished work; the suites in test/ fail with the message. */
function todo(what: string): never {
  throw new Error(\`To do in src/server.ts: \${what}\`);
}

/**
 * Connects with the driver. The path of the URL is a database: its keys begin with it on the server, and not in the calls
 * below.
 */
export async function openServer(url: string, connectTimeoutMs: number): Promise<OrderedKeyServer> {
  // Remove this line once these functions are implemented.
  todo(\`openServer: connect to \${url} within \${connectTimeoutMs} ms, and implement the functions below\`);
  return {
    server: '${name}',
    /** The text of each key, or undefined, including what other processes have written. */
    get: async (keys) => todo(\`get: \${keys}\`),
    /** At most \`limit\` keys from \`start\` to before \`end\`, in the order of their UTF-8 bytes. */
    keys: async ({ start, end, limit, reverse }) => todo(\`keys: \${start} to \${end}, \${limit}, \${reverse}\`),
    /** In one step: false if a key of \`expected\` has another text, or exists without one; else all changes and true. */
    commit: async ({ expected, put, remove }) => todo(\`commit: \${expected.length}, \${put.length}, \${remove.length}\`),
    // How many keys a call has at most, if not 100: maxKeys: …,
    // The clock of the server, if it has one: now: async () => …,
    // If it notifies of changes: watch: async (key, onPut) => …,
    toSvcError,
    close: async () => todo('close'),
  };
}
`;

const errorsSource = (name: string): string => `import { errorConverter } from '@svc/sdk/dialect';

export const toSvcError = errorConverter({
  engine: '${name}',
  // To do: recognize the errors of the driver. Any other error is reported as a bug of this dialect. Without isEngineError,
  // every error is one of the engine.
  isEngineError: (error) => !error.message.startsWith('To do in '),
  // To do: the engine's words.
  messages: {
    connection_failed: /ECONNREFUSED|ENOTFOUND|ETIMEDOUT/,
    connection_lost: /ECONNRESET|EPIPE|socket/i,
    authentication_failed: /authentication|password/i,
    permission_denied: /permission denied/i,
  },
});
`;

const suiteTest = (
  name: string,
  identifier: string,
  variable: string,
  server: string,
): string => `import { randomUUID } from 'node:crypto';
import { extname } from 'node:path';
import { test } from 'node:test';
import { approvalSuite, dialectSuite, keyValueSyntax, recordStoreSuite, type StoreUnderTest } from '@svc/sdk/testing';
import { ${identifier} } from '../src/index.ts';

const { ${variable} } = process.env;

/** An empty database for one case. */
async function createDatabase() {
  if (!${variable}) throw new Error('To do in test/suite.test.ts: a server: export ${variable}=${server}');
  const url = new URL(${variable});
  url.pathname = \`/\${randomUUID()}\`;
  // To do: remove its keys, on a server that is kept.
  return { url: url.href, drop: async () => undefined };
}

${storeUnderTest(name, identifier)}

// One case: npm run build && node --test --test-name-pattern='<part of its name>' dist/test/suite.test.js
// The records first: they need less of the server.
recordStoreSuite(test, store);
dialectSuite(test, {
  ...keyValueSyntax,
${dialectUnderTest(name, identifier)}
  // For a server that answers slowly: timeoutMs: 600_000, randomSchemas: 5,
  // Cases that cannot pass, each with the reason. Without \`watch\` and \`now\`:
  skip: {
    'a watcher is notified of the records that notifyOn selects': '${name} does not notify other processes; they poll',
    'a deadline does not depend on the clock of the process': '${name} has no clock',
  },
});
approvalSuite(test, store);
`;
