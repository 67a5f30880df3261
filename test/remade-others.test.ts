import * as assert from 'node:assert/strict';
import { unavailable as cassandraMissing, freshKeyspace } from './kit/cassandra.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { freshMongo, missing as mongoMissing } from './kit/mongodb.ts';
import { unavailable as dynamodbMissing, ownDynamodb } from './kit/own-dynamodb.ts';
import { cassandraFacts, grownKeyspace } from './kit/remade-cassandra.ts';
import { dynamoFacts, grownDynamo } from './kit/remade-dynamodb.ts';
import { grownMongo, mongoFacts } from './kit/remade-mongodb.ts';
import { type Facts, remakeFrom } from './kit/remake-files.ts';
import { test } from './kit/test.ts';

/**
 * As `remade`, for engines without SQL: a database made again from the files that `pull` wrote is the same one. Each returns two
 * databases, a grown and an empty one, and how the facts of one are read.
 */
interface Pair<T> {
  readonly from: T;
  readonly to: T;
  readonly facts: (database: T) => Promise<Facts>;
}

async function cassandra(): Promise<Pair<Awaited<ReturnType<typeof freshKeyspace>>>> {
  return { from: await grownKeyspace(), to: await freshKeyspace(), facts: cassandraFacts };
}

async function mongodb(): Promise<Pair<Awaited<ReturnType<typeof freshMongo>>>> {
  return { from: await grownMongo(), to: await freshMongo(), facts: mongoFacts };
}

function remakes<T extends { readonly url: string; drop(): Promise<void> }>(
  name: string,
  missing: string | undefined,
  grow: () => Promise<Pair<T>>,
): void {
  const title = `${name}: a database that was pulled and made again is the same`;
  if (missing !== undefined) {
    test.skip(title, missing);
    return;
  }
  test(
    title,
    async () => {
      const { from, to, facts } = await grow();
      try {
        const before = await facts(from);
        const { said, silent } = await remakeFrom({ from: from.url, to: to.url, before, readMade: () => facts(to) });
        assert.deepEqual({ said, silent }, { said: [], silent: [] });
      } finally {
        await Promise.all([from.drop(), to.drop()]);
      }
    },
    // Many statements that change the schema.
    { timeoutMs: 300_000 },
  );
}

async function dynamodb(): Promise<Pair<ReturnType<typeof freshPrefix>>> {
  const server = await ownDynamodb();
  const { port } = server;
  const from = await grownDynamo(port);
  const to = freshPrefix(port);
  const end = async () => {
    await to.drop();
    await server.kill();
  };
  return { from, to: { ...to, drop: end }, facts: (database) => dynamoFacts(port, database) };
}

remakes('cassandra', cassandraMissing, cassandra);
remakes('mongodb', mongoMissing, mongodb);
remakes('dynamodb', dynamodbMissing(), dynamodb);
