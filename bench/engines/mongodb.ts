import { type Document, MongoClient } from 'mongodb';
import { historyTable } from '../../core/migration/history-table.ts';
import type { Migration } from '../../core/migration/migration.ts';
import { createIndexesSpec } from '../../plugins/dialects/mongodb/compile/indexes.ts';
import { mongodb } from '../../plugins/dialects/mongodb/dialect.ts';
import { freshMongo, missing } from '../../test/kit/mongodb.ts';
import type { Bare, BenchEngine } from './contender.ts';
import { rowOf } from './row.ts';

export function mongodbBench(): BenchEngine {
  if (missing !== undefined) throw new Error(missing);
  return {
    dialect: mongodb,
    server: 'the MongoDB server of the tests',
    fresh: async () => {
      const database = await freshMongo();
      return { url: database.url, bare: () => bare(database.url), drop: database.drop };
    },
    close: async () => undefined,
  };
}

/** The value of the dialect. */
const BATCH = 1000;

async function bare(url: string): Promise<Bare> {
  const client = await new MongoClient(url).connect();
  const db = client.db();
  const load = db.collection('load');
  return {
    async migrate(migrations) {
      const rows = db.collection(historyTable.collection);
      await rows.createIndex({ seq: 1, _id: 1 });
      let done: Document[] = [];
      for (const [index, one] of migrations.entries()) {
        await rows.bulkWrite([
          ...done,
          { insertOne: { document: historyDocument(one, index + 1, 'applying') } },
        ] as never);
        const [statement] = mongodb.compile(one.up[0] as never, new Map());
        const step = statement?.run;
        if (step?.kind !== 'create') throw new Error(`${one.tag} creates no collection`);
        await db.command({ create: step.collection, validator: step.validator });
        await db.command({ createIndexes: step.collection, indexes: step.indexes.map(createIndexesSpec) });
        const { migration: _, tag: _id, ...completed } = historyDocument(one, index + 1, 'completed');
        done = [
          { updateOne: { filter: { _id: one.tag, _version: 1 }, update: { $set: { ...completed, _version: 2 } } } },
        ];
      }
      await rows.bulkWrite(done as never);
    },
    async load(rows) {
      for (let from = 0; from < rows; from += 10_000) {
        const length = Math.min(10_000, rows - from);
        await load.insertMany(Array.from({ length }, (_, index) => ({ id: from + index, name: `n${from + index}` })));
      }
    },
    async backfill() {
      let ids: unknown[] = [];
      let filled = 0;
      const write = () => {
        filled += ids.length;
        return load.updateMany(
          { _id: { $in: ids }, kind: null } as never,
          { $set: { kind: 'person' } },
          { bypassDocumentValidation: true },
        );
      };
      for await (const { _id } of load.find({ kind: null }, { projection: { _id: 1 }, batchSize: BATCH })) {
        ids.push(_id);
        if (ids.length < BATCH) continue;
        await write();
        ids = [];
      }
      if (ids.length > 0) await write();
      return filled;
    },
    close: () => client.close(),
  };
}

function historyDocument(one: Migration, seq: number, status: 'applying' | 'completed'): Document {
  const row: Document = { _id: one.tag, ...rowOf(one, seq, status), _version: 1 };
  // As text, like svc: keys of a migration may be invalid as MongoDB field names.
  row.migration = JSON.stringify(one);
  if (row.journal) row.journal = JSON.stringify(row.journal);
  return row;
}
