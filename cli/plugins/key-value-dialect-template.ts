import { dialectUnderTest, embeddedStore, type PluginFiles, registrationOfDialect } from './templates.ts';

/** A dialect for a key-value engine with one file per database. */
export function keyValueDialectFiles(name: string, identifier: string): PluginFiles {
  return {
    description: `dialect for ${name}: schemas, records and approvals`,
    configExample: `databases: { main: { dialect: '${name}', url: '${name}://./shop.db' } },`,
    steps: [
      '`openDatabase` in `src/database.ts`: the driver, which is also a dependency in `package.json`, and the functions of a `KeyValueFile`',
      'the messages in `src/errors.ts`',
      'reasons of the engine for what it does not support: `unsupported` in `src/index.ts`',
      'the skipped cases in `test/suite.test.ts`',
    ],
    files: {
      'src/index.ts': indexSource(name, identifier),
      'src/database.ts': databaseSource(name),
      'src/errors.ts': errorsSource(name),
      'test/suite.test.ts': suiteTest(name, identifier),
    },
  };
}

const indexSource = (name: string, identifier: string): string => `import { definePlugin } from '@svc/sdk';
import { embeddedKeyValueDialect, UNSUPPORTED_BY_KEY_VALUE } from '@svc/sdk/dialect';
import { openDatabase } from './database.ts';
import { toSvcError } from './errors.ts';

// An engine with a server, or without transactions in JavaScript, uses \`keyValueDialect\` with \`identify\` and an \`open\` that
// returns a KeyValueDriver.
export const ${identifier} = embeddedKeyValueDialect({
  name: '${name}',
  // With reasons of the engine: index: { why: '…', next: '…' }.
  unsupported: { ...UNSUPPORTED_BY_KEY_VALUE },
  toSvcError,
  // If a database is a folder: names of its files, also while it is created. A folder of something else is then refused.
  // folderFiles: /^(CURRENT|LOCK|LOG)$/,
  open: openDatabase,
});

${registrationOfDialect(name, identifier)}
`;

const databaseSource = (name: string): string => `import type { KeyValueFile } from '@svc/sdk/dialect';

/** Marks unfinished work; the suites in test/ fail with the message. */
function todo(what: string): never {
  throw new Error(\`To do in src/database.ts: \${what}\`);
}

/** Loads the driver, and opens the file or creates it. Values are texts and objects, whose bytes are a Uint8Array. */
export async function openDatabase(file: string): Promise<KeyValueFile> {
  // Remove this line once these functions are implemented.
  todo(\`openDatabase: open \${file} with the driver of ${name}, and implement the functions below\`);
  return {
    server: '${name}',
    /** The value of a key, also if another process has written it. */
    get: (key) => todo(\`get: \${key}\`),
    /** At most \`limit\` keys from \`start\` to before \`end\`, in the order of their UTF-8 bytes. */
    keys: ({ start, end, limit, reverse }) => todo(\`keys: \${start} to \${end}, \${limit}, \${reverse}\`),
    /** Runs \`work({ get, put, remove })\` while nobody else writes, other processes included: all durable, or none of it. */
    transaction: (_work) => todo('transaction'),
    close: () => undefined,
  };
}
`;

const errorsSource = (name: string): string => `import { errorConverter } from '@svc/sdk/dialect';

export const toSvcError = errorConverter({
  engine: '${name}',
  // To do: recognize the errors of the driver. Any other error is reported as a bug of this dialect. Without isEngineError,
  // every error is one of the engine.
  isEngineError: (error) => !error.message.startsWith('To do in '),
  // To do: the engine's words. database_in_use: only one process at a time can open the file, and others wait.
  messages: {
    database_in_use: /locked|in use/i,
    permission_denied: /permission denied|read-only/i,
    connection_failed: /unable to open|no such file/i,
  },
});
`;

const suiteTest = (name: string, identifier: string): string => `import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { test } from 'node:test';
import {
  approvalSuite,
  dialectSuite,
  keyValueFileSuite,
  keyValueSyntax,
  recordStoreSuite,
  type StoreUnderTest,
} from '@svc/sdk/testing';
import { openDatabase } from '../src/database.ts';
import { ${identifier} } from '../src/index.ts';

${embeddedStore(name, identifier)}

// One case: npm run build && node --test --test-name-pattern='<part of its name>' dist/test/suite.test.js
// The file itself. The other suites depend on it.
keyValueFileSuite(test, {
  name: '${name}',
  open: openDatabase,
  // Other processes load \`openDatabase\` from here.
  module: new URL(\`../src/database\${extname(import.meta.url)}\`, import.meta.url),
});
dialectSuite(test, {
  ...keyValueSyntax,
${dialectUnderTest(name, identifier)}
  // Cases that cannot pass, each with the reason.
  skip: {
    'a watcher is notified of the records that notifyOn selects': '${name} does not notify other processes; they poll',
    'a deadline does not depend on the clock of the process': '${name} runs in the process and has its clock',
  },
});
recordStoreSuite(test, store);
approvalSuite(test, store);
`;
