import type { BSON, Db, Document, MongoClient } from 'mongodb';
import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import { withoutPassword } from '../../../../core/url.ts';
import { type Driver, loadDriver } from '../../../shared/driver.ts';
import { withNothingChanged } from '../../shared/errors.ts';
import { toSvcError } from './errors.ts';
import type { Settings } from './settings.ts';
import { databaseOf } from './url.ts';

/** A database of a server, and the properties of the server. */
export interface MongoServer {
  readonly client: MongoClient;
  readonly db: Db;
  /** Product and version, for display. */
  readonly version: string;
  /** Supports transactions: a replica set or a sharded cluster, not a standalone server. */
  readonly transactions: boolean;
  /** A replica set or a sharded cluster: supports linearizable reads. */
  readonly clustered: boolean;
  readonly bson: typeof BSON;
}

const driver: Driver<typeof import('mongodb')> = {
  name: 'The MongoDB driver',
  package: 'mongodb',
  load: () => import('mongodb'),
};

/** MongoDB 5.0. */
const MINIMUM_WIRE_VERSION = 13;

/** Throws `driver_missing`, `url_invalid` or the error of the connection. */
export async function openServer(url: string, settings: Settings): Promise<MongoServer> {
  const { MongoClient, BSON } = await loadDriver(driver, settings.root);
  const client = createClient(MongoClient, url, settings);
  try {
    await client.connect();
    const db = client.db(databaseOf(url));
    const [hello, build] = await Promise.all([db.command({ hello: 1 }), db.command({ buildInfo: 1 })]);
    if (Number(hello.maxWireVersion) < MINIMUM_WIRE_VERSION) {
      throw new SvcError('not_supported', 'This MongoDB server is too old.', {
        why: `It has version ${build.version}; svc supports 5.0 and later.`,
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
    throw withNothingChanged(toSvcError(error));
  }
}

function createClient(Client: typeof MongoClient, url: string, { connectTimeoutMs }: Settings): MongoClient {
  try {
    return new Client(url, {
      ...(!/[?&]appname=/i.test(url) && { appName: 'svc' }),
      serverSelectionTimeoutMS: connectTimeoutMs,
      connectTimeoutMS: connectTimeoutMs,
      // The driver's default sends undefined as null.
      ignoreUndefined: true,
      writeConcern: { w: 'majority' },
      readPreference: 'primary',
    });
  } catch {
    // The driver's own message may contain the password.
    throw new SvcError('url_invalid', 'The URL of a MongoDB database cannot be used.', {
      why: `The driver does not understand it. (${withoutPassword(url)})`,
      next: ['Write mongodb://user:password@host:27017/database or mongodb+srv://user:password@host/database.'],
    });
  }
}

/** The server's clock. */
export async function serverTime({ db }: Pick<MongoServer, 'db'>): Promise<Date> {
  const { localTime } = await db.command({ hello: 1 });
  return localTime as Date;
}

/** Extended JSON as BSON values of the driver. */
export function fromExtendedJson({ bson }: Pick<MongoServer, 'bson'>, value: Json): Document {
  return bson.EJSON.deserialize(value as Document, { relaxed: false });
}

/** Canonical extended JSON: equal for documents with equal keys, in the same order, and equal values. */
export function toExtendedJson({ bson }: Pick<MongoServer, 'bson'>, value: unknown): Json {
  return JSON.parse(bson.EJSON.stringify(value, { relaxed: false })) as Json;
}

/** The write concern of commands that change a schema or data. */
export const MAJORITY = { writeConcern: { w: 'majority' } } as object;

/** For records, the registry and the lease. Commands that move data or build indexes have no limit. */
const TIME_LIMIT_MS = 10_000;

/** An operation's options: without them, a linearizable read waits forever when a majority of members is down. */
export const TIME_LIMIT = { maxTimeMS: TIME_LIMIT_MS } as const;

/** Options of a collection or a transaction, for writes. A write that timed out may have been applied. */
export const MAJORITY_WITH_TIME_LIMIT = { writeConcern: { w: 'majority', wtimeoutMS: TIME_LIMIT_MS } } as const;
