import * as assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from './kit/test.ts';
import { type Engine, title } from './servers/engine.ts';
import { find } from './servers/find.ts';
import { waitUntil } from './suites/wait-until.ts';

/** Writes a word to a database of its own, reads it back, and removes the database. */
type RoundTrip = (url: string, name: string, word: string) => Promise<unknown>;

/** Each uses the driver of the dialect or broker. */
const ROUND_TRIPS: Readonly<Record<Engine, RoundTrip>> = {
  async postgresql(url, name, word) {
    const { default: pg } = await import('pg');
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(`CREATE TEMPORARY TABLE ${name} (word text)`);
      await client.query(`INSERT INTO ${name} VALUES ($1)`, [word]);
      return (await client.query(`SELECT word FROM ${name}`)).rows[0].word;
    } finally {
      await client.end();
    }
  },

  async mysql(url, name, word) {
    const { createConnection } = await import('mysql2/promise');
    const connection = await createConnection(url);
    try {
      await connection.query(`CREATE DATABASE ${name}`);
      await connection.query(`CREATE TABLE ${name}.t (word TEXT)`);
      await connection.query(`INSERT INTO ${name}.t VALUES (?)`, [word]);
      const [rows] = await connection.query(`SELECT word FROM ${name}.t`);
      return (rows as { word: string }[])[0]?.word;
    } finally {
      await connection.query(`DROP DATABASE IF EXISTS ${name}`);
      await connection.end();
    }
  },

  async mariadb(url, name, word) {
    const { createConnection } = await import('mariadb');
    const { hostname: host, port, username: user, password } = new URL(url);
    const connection = await createConnection({ host, port: Number(port || 3306), user, password });
    try {
      await connection.query(`CREATE DATABASE ${name}`);
      await connection.query(`CREATE TABLE ${name}.t (word TEXT)`);
      await connection.query(`INSERT INTO ${name}.t VALUES (?)`, [word]);
      return (await connection.query(`SELECT word FROM ${name}.t`))[0].word;
    } finally {
      await connection.query(`DROP DATABASE IF EXISTS ${name}`);
      await connection.end();
    }
  },

  async mongodb(url, name, word) {
    const { MongoClient } = await import('mongodb');
    const client = new MongoClient(url);
    try {
      await client.db(name).collection('c').insertOne({ word });
      return (await client.db(name).collection('c').findOne({}))?.word;
    } finally {
      await client.db(name).dropDatabase();
      await client.close();
    }
  },

  async dynamodb(url, name, word) {
    const { DynamoDB } = await import('@aws-sdk/client-dynamodb');
    const client = new DynamoDB({
      endpoint: url,
      region: 'us-east-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    });
    try {
      await client.createTable({
        TableName: name,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
      });
      const table = async () => (await client.describeTable({ TableName: name })).Table;
      await waitUntil(async () => (await table())?.TableStatus === 'ACTIVE', 'the table never became active');
      await client.putItem({ TableName: name, Item: { id: { S: 'a' }, word: { S: word } } });
      await client.updateTable({
        TableName: name,
        AttributeDefinitions: [{ AttributeName: 'word', AttributeType: 'S' }],
        GlobalSecondaryIndexUpdates: [
          {
            Create: {
              IndexName: 'by_word',
              KeySchema: [{ AttributeName: 'word', KeyType: 'HASH' }],
              Projection: { ProjectionType: 'ALL' },
            },
          },
        ],
      });
      // An index that is active at once would leave all waiting untested.
      assert.equal((await table())?.GlobalSecondaryIndexes?.[0]?.IndexStatus, 'CREATING');
      return (await client.getItem({ TableName: name, Key: { id: { S: 'a' } }, ConsistentRead: true })).Item?.word?.S;
    } finally {
      await client.deleteTable({ TableName: name });
      client.destroy();
    }
  },

  async cassandra(url, name, word) {
    const { default: driver } = await import('cassandra-driver');
    const client = new driver.Client({ contactPoints: [url], localDataCenter: 'datacenter1' });
    try {
      const replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
      await client.execute(`CREATE KEYSPACE ${name} WITH replication = ${replication}`);
      await client.execute(`CREATE TABLE ${name}.t (id int PRIMARY KEY, word text)`);
      await client.execute(`INSERT INTO ${name}.t (id, word) VALUES (1, ?)`, [word], { prepare: true });
      return (await client.execute(`SELECT word FROM ${name}.t`)).first().get('word');
    } finally {
      await client.execute(`DROP KEYSPACE IF EXISTS ${name}`);
      await client.shutdown();
    }
  },

  async rabbitmq(url, name, word) {
    const { connect } = await import('amqplib');
    const connection = await connect(url);
    try {
      const channel = await connection.createConfirmChannel();
      await channel.assertQueue(name, { exclusive: true, autoDelete: true });
      channel.sendToQueue(name, Buffer.from(word));
      await channel.waitForConfirms();
      const message = await channel.get(name, { noAck: true });
      return message === false ? undefined : message.content.toString();
    } finally {
      await connection.close();
    }
  },
};

for (const [engine, roundTrip] of Object.entries(ROUND_TRIPS) as [Engine, RoundTrip][]) {
  const name = `${title(engine)}: its driver reads back what it has written`;
  const found = await find(engine);
  if ('missing' in found) test.skip(name, found.missing);
  else
    test(
      name,
      async () => {
        const word = 'größer 😀';
        assert.equal(await roundTrip(found.url, `svc_test_${randomUUID().replaceAll('-', '')}`, word), word);
      },
      { timeoutMs: 120_000 },
    );
}
