import type { Dialect } from '../../core/dialect.ts';
import { cassandra } from '../../plugins/dialects/cassandra/dialect.ts';
import { dynamodb } from '../../plugins/dialects/dynamodb/dialect.ts';
import { mariadb } from '../../plugins/dialects/mariadb/dialect.ts';
import { mongodb } from '../../plugins/dialects/mongodb/dialect.ts';
import { mysql } from '../../plugins/dialects/mysql/dialect.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { find } from '../servers/find.ts';
import type { TestDatabase } from '../suites/test-database.ts';
import { freshKeyspace } from './cassandra.ts';
import { freshPrefix } from './dynamodb.ts';
import { freshMongo } from './mongodb.ts';
import { freshDatabase as freshMysql } from './mysql.ts';
import { freshDatabase } from './postgresql.ts';

type EngineName = 'postgresql' | 'mysql' | 'mariadb' | 'mongodb' | 'dynamodb' | 'cassandra';

export interface Engine {
  readonly name: EngineName;
  readonly dialect: Dialect;
  /** Why no server is available. */
  readonly missing: string | undefined;
  createDatabase(): Promise<TestDatabase>;
}

const kinds: Readonly<
  Record<EngineName, { dialect: Dialect; fresh: (url: string) => TestDatabase | Promise<TestDatabase> }>
> = {
  postgresql: { dialect: postgresql, fresh: () => freshDatabase() },
  mysql: { dialect: mysql, fresh: freshMysql },
  mariadb: { dialect: mariadb, fresh: freshMysql },
  mongodb: { dialect: mongodb, fresh: () => freshMongo() },
  dynamodb: { dialect: dynamodb, fresh: (url) => freshPrefix(Number(new URL(url).port)) },
  cassandra: { dialect: cassandra, fresh: () => freshKeyspace() },
};

/** The shared server of each engine. */
export const sixEngines: readonly Engine[] = await Promise.all(
  Object.entries(kinds).map(async ([engine, { dialect, fresh }]) => {
    const name = engine as EngineName;
    const found = await find(name);
    return 'missing' in found
      ? { name, dialect, missing: found.missing, createDatabase: () => Promise.reject(new Error(found.missing)) }
      : { name, dialect, missing: undefined, createDatabase: async () => fresh(found.url) };
  }),
);
