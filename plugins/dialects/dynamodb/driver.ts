import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { type Driver, loadDriver } from '../../driver.ts';
import type { Place } from './place.ts';
import type { Settings } from './settings.ts';

export type Sdk = typeof import('@aws-sdk/client-dynamodb');

/** As many requests as data moves send at a time, and some for the lease. */
const SOCKETS = 64;

const driver: Driver<Sdk> = {
  name: 'The driver of DynamoDB',
  package: '@aws-sdk/client-dynamodb',
  load: () => import('@aws-sdk/client-dynamodb'),
};

/** Throws `driver_missing`. Takes 100 ms, so only a connection loads it. */
export function loadSdk({ root }: Pick<Settings, 'root'>): Promise<Sdk> {
  return loadDriver(driver, root);
}

/** Sends each request once: after a lost reply a second one would say that somebody else had done it. */
export function makeClient(sdk: Sdk, place: Place, settings: Settings): DynamoDBClient {
  return quietly(
    () =>
      new sdk.DynamoDBClient({
        region: place.region,
        ...(place.endpoint !== undefined && { endpoint: place.endpoint }),
        ...(place.credentials && { credentials: place.credentials }),
        maxAttempts: 1,
        requestHandler: {
          connectionTimeout: settings.connectTimeoutMs,
          requestTimeout: settings.requestTimeoutMs,
          throwOnRequestTimeout: true,
          httpAgent: { keepAlive: true, maxSockets: SOCKETS },
          httpsAgent: { keepAlive: true, maxSockets: SOCKETS },
        },
      }),
  );
}

const SILENCER = 'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED';

/** The SDK warns on Node 20 of its own future versions, into what a command prints. */
function quietly<T>(make: () => T): T {
  const before = process.env[SILENCER];
  process.env[SILENCER] = 'true';
  try {
    return make();
  } finally {
    if (before === undefined) delete process.env[SILENCER];
    else process.env[SILENCER] = before;
  }
}
