import type { BuiltinDialect } from '../config/define.ts';

/** The files of a new project for a dialect. */
export interface ProjectTemplate {
  readonly config: string;
  readonly schema: string;
  /** The packages that the project needs besides the SDK. */
  readonly packages: readonly string[];
  /** The variable that must have a URL before the first command on the database. */
  readonly variable?: string;
}

interface NewDatabase {
  /** Shown next to the variable that has the URL. */
  readonly url: string;
  /** The URL of a database that needs no server. */
  readonly embedded?: string;
  /** Not bundled into the command line. */
  readonly driver?: string;
  /** The engine numbers rows, and fills in defaults. */
  readonly fillsIn: boolean;
}

const DATABASES: Readonly<Record<BuiltinDialect, NewDatabase>> = {
  postgresql: {
    url: 'postgresql://user:password@host:5432/name',
    embedded: 'pglite://./.svc/main',
    driver: '@electric-sql/pglite',
    fillsIn: true,
  },
  mysql: { url: 'mysql://user:password@host:3306/name', fillsIn: true },
  mariadb: { url: 'mariadb://user:password@host:3306/name', driver: 'mariadb', fillsIn: true },
  mongodb: { url: 'mongodb://user:password@host:27017/name', driver: 'mongodb', fillsIn: false },
  dynamodb: { url: 'dynamodb://eu-west-1/prefix', driver: '@aws-sdk/client-dynamodb', fillsIn: false },
  cassandra: {
    url: 'cassandra://user:password@host:9042/keyspace?dc=datacenter1',
    driver: 'cassandra-driver',
    fillsIn: false,
  },
};

export const isBuiltinDialect = (name: string): name is BuiltinDialect => Object.hasOwn(DATABASES, name);

export const BUILTIN_DIALECTS = Object.keys(DATABASES);

export const DEFAULT_DIALECT: BuiltinDialect = 'postgresql';

/** An embedded database serves the first environment, if there is one; every other URL comes from the process's environment. */
export function projectTemplate(dialect: BuiltinDialect, product: string, env: string): ProjectTemplate {
  const { url, embedded, driver, fillsIn } = DATABASES[dialect];
  const key = /^[A-Za-z_]\w*$/.test(env) ? env : `'${env}'`;
  const isProduction = env === 'prd';
  const fromVariable = `process.env.DATABASE_URL, // ${url}`;
  const urls = embedded
    ? [
        `${key}: '${embedded}', // an embedded database in this folder`,
        ...(isProduction ? [] : [`prd: ${fromVariable}`]),
      ]
    : [`${key}: ${fromVariable}`, ...(isProduction ? [] : ['prd: process.env.PRODUCTION_DATABASE_URL,'])];
  return {
    packages: driver === undefined ? [] : [driver],
    ...(embedded === undefined && { variable: 'DATABASE_URL' }),
    schema: fillsIn ? SCHEMA : SCHEMA.replace('"Integer", "primaryKey"', '"Uuid", "primaryKey"').replace(FILLED_IN, ''),
    config: `import { defineConfig } from '@svc/sdk/config';

export default defineConfig({
  product: '${product}',
  env: '${env}',
  databases: {
    main: {
      dialect: '${dialect}',
      url: {
        ${urls.join('\n        ')}
      },
    },
  },
${isProduction ? '' : '  environments: { prd: { protected: true } },\n'}});
`,
  };
}

const FILLED_IN = /, "(?:autoGenerate": true|default": "now")/g;

const SCHEMA = `[
  {
    "db": "main",
    "tables": {
      "notes": {
        "id": { "type": "Integer", "primaryKey": true, "autoGenerate": true },
        "title": { "type": "String", "length": 200, "required": true },
        "body": { "type": "Text" },
        "createdAt": { "type": "Timestamp", "required": true, "default": "now" }
      }
    }
  }
]
`;
