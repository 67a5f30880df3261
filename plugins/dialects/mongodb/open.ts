import type { BSON, Db, Document, MongoClient } from 'mongodb';
import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import { withoutPassword } from '../../../core/url.ts';
import { type Driver, loadDriver } from '../../driver.ts';
import { refusal, unchanged } from './errors.ts';
import { databaseOf } from './identify.ts';
import type { Settings } from './settings.ts';

/** A database of a server, and what its driver knows. */
export interface Server {
  readonly client: MongoClient;
  readonly db: Db;
  /** For people. */
  readonly version: string;
  /** Several documents can be written as one: a replica set or a sharded cluster, not a server that stands alone. */
  readonly transactions: boolean;
  /** It may have several members: its reads can be asked to see every write that was answered before. */
  readonly clustered: boolean;
  readonly bson: typeof BSON;
}

const driver: Driver<typeof import('mongodb')> = {
  name: 'The driver of MongoDB',
  package: 'mongodb',
  load: () => import('mongodb'),
};

/** Before validators by `$jsonSchema` with all that ours say; wire version of MongoDB 5.0. */
const OLDEST_WIRE = 13;

/** Throws `driver_missing`, `url_invalid` or what the server says. */
export async function openServer(url: string, settings: Settings): Promise<Server> {
  const { MongoClient, BSON } = await loadDriver(driver, settings.root);
  const client = clientOf(MongoClient, url, settings);
  try {
    await client.connect();
    const db = client.db(databaseOf(url));
    const [hello, build] = await Promise.all([db.command({ hello: 1 }), db.command({ buildInfo: 1 })]);
    if (Number(hello.maxWireVersion) < OLDEST_WIRE) {
      throw new SvcError('not_supported', 'This MongoDB server is too old.', {
        why: `It has version ${build.version}; 5.0 is the oldest that svc knows.`,
      });
    }
    const clustered = hello.setName !== undefined || hello.msg === 'isdbgrid';
    return {
      client,
      db,
      version: build.gateway ? String(build.gateway) : `MongoDB ${build.version}`,
      transactions: clustered && hello.logicalSessionTimeoutMinutes !== undefined,
      clustered,
      bson: BSON,
    };
  } catch (error) {
    await client.close().catch(() => undefined);
    throw unchanged(refusal(error));
  }
}

function clientOf(Client: typeof MongoClient, url: string, { connectTimeoutMs }: Settings): MongoClient {
  try {
    return new Client(url, {
      ...(!/[?&]appname=/i.test(url) && { appName: 'svc' }),
      serverSelectionTimeoutMS: connectTimeoutMs,
      connectTimeoutMS: connectTimeoutMs,
      // What is undefined would be stored as null, and asked for as "missing".
      ignoreUndefined: true,
      writeConcern: { w: 'majority' },
      readPreference: 'primary',
    });
  } catch {
    // The driver's own words may repeat the password.
    throw new SvcError('url_invalid', 'The URL of a MongoDB database cannot be used.', {
      why: `The driver does not understand it. (${withoutPassword(url)})`,
      next: ['Write mongodb://user:password@host:27017/database or mongodb+srv://user:password@host/database.'],
    });
  }
}

/** The server's clock. */
export async function clockOf({ db }: Pick<Server, 'db'>): Promise<Date> {
  const { localTime } = await db.command({ hello: 1 });
  return localTime as Date;
}

/** Extended JSON as the values the driver sends. */
export function fromExtended({ bson }: Pick<Server, 'bson'>, value: Json): Document {
  return bson.EJSON.deserialize(value as Document, { relaxed: false });
}

/** The one text of a document: equal where its keys, their order and its values are. */
export function toExtended({ bson }: Pick<Server, 'bson'>, value: unknown): Json {
  return JSON.parse(bson.EJSON.stringify(value, { relaxed: false })) as Json;
}
