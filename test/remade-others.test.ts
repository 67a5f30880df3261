import { unavailable as cassandraMissing, freshKeyspace } from './kit/cassandra.ts';
import { freshMongo, missing as mongoMissing } from './kit/mongodb.ts';
import { cassandraFacts, grownKeyspace } from './kit/remade-cassandra.ts';
import { grownMongo, mongoFacts } from './kit/remade-mongodb.ts';
import { remake } from './kit/remake.ts';
import { test } from './kit/test.ts';

/**
 * As `remade`, for engines without SQL: a database made again from the files that `pull` wrote is the same one, or a warning says
 * what is not.
 */
const CASSANDRA = 'cassandra: a table that was pulled and made again is the same, or a warning says what is not';
if (cassandraMissing !== undefined) test.skip(CASSANDRA, cassandraMissing);
else
  test(
    CASSANDRA,
    async () => {
      const from = await grownKeyspace();
      const to = await freshKeyspace();
      try {
        await remake({
          from: from.url,
          to: to.url,
          before: await cassandraFacts(from),
          readMade: () => cassandraFacts(to),
          said: [],
        });
      } finally {
        await Promise.all([from.drop(), to.drop()]);
      }
    },
    { timeoutMs: 300_000 },
  );

const MONGODB = 'mongodb: a collection that was pulled and made again is the same';
if (mongoMissing !== undefined) test.skip(MONGODB, mongoMissing);
else
  test(
    MONGODB,
    async () => {
      const { database: from } = await grownMongo();
      const to = await freshMongo();
      try {
        await remake({
          from: from.url,
          to: to.url,
          before: await mongoFacts(from),
          readMade: () => mongoFacts(to),
          said: [],
        });
      } finally {
        await Promise.all([from.drop(), to.drop()]);
      }
    },
    { timeoutMs: 300_000 },
  );
