import { API } from '../../core/kernel.ts';
import { FIELD_TYPES } from '../../core/schema/types.ts';
import type { PluginFiles } from './package.ts';

export function dialectFiles(name: string, identifier: string): PluginFiles {
  return {
    what: `keeps schemas, records and approvals in ${name}`,
    use: `databases: { main: { dialect: '${name}', url: '${name}://<where it is>' } },`,
    source: source(name, identifier),
    test: suite(name, identifier),
  };
}

const source = (
  name: string,
  identifier: string,
): string => `import { type Connection, type Dialect, definePlugin } from '@svc/sdk';

/** What is not written yet; the suite in test/ ends with it too. */
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
    // Whether DDL can be rolled back, together with the history row.
    transactionalDdl: false,
    names: { most: 63, of: 'bytes' },
    // What the engine cannot do, each with the reason and what to do instead; the suite then expects the refusal.
    refuses: {},
  },
  compile: (operation) => todo(\`compile: the statements for \${operation.type}, before anything has run\`),
  // What the catalog gives back of a model; all of it, if every type has a name of its own.
  seen: (model) => model,
  identify: (url) => todo(\`identify: the database behind \${url.split('://', 1)[0]}://, without credentials\`),
  async connect(_url, _options): Promise<Connection> {
    // For an engine that speaks SQL, \`keptDialect\` and \`sqlConnection\` of '@svc/sdk/dialect' may do most of it.
    return todo('connect: open the driver, and give run, introspect, records, exclusively and the others');
  },
};

export default definePlugin({
  name: '${name}',
  api: ${API},
  apply: (kernel) => kernel.dialects.register('${name}', ${identifier}),
});
`;

const suite = (name: string, identifier: string): string => `import { test } from 'node:test';
import { type DialectUnderTest, dialectSuite, recordStoreSuite, sqlWords } from '@svc/sdk/testing';
import { ${identifier} } from '../src/index.ts';

/** A database that is new and empty, for each case, and its removal. */
const fresh: DialectUnderTest['fresh'] = async () => {
  throw new Error('To do in test/suite.test.ts: fresh: make a database, and give its URL');
};

dialectSuite(test, {
  // For an engine that speaks SQL. Another one says itself how rows are stored and read beside the dialect.
  ...sqlWords((column) => \`"\${column.replaceAll('"', '""')}"\`),
  name: '${name}',
  dialect: ${identifier},
  fresh,
  // Cases that cannot hold, each with the reason: skip: { 'who watches hears of what its definition tells, and of nothing else': 'the engine tells nobody' },
});

// Once these hold, add approvalSuite: it takes the same.
recordStoreSuite(test, {
  name: '${name}',
  async fresh() {
    const { url, drop } = await fresh();
    return { connect: () => ${identifier}.connect(url, {}), drop };
  },
});
`;
