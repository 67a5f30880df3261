import { setTimeout as wait } from 'node:timers/promises';
import type * as Sdk from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../../core/errors.ts';
import { type Driver, loadDriver } from '../../../shared/driver.ts';
import { mappedError } from '../../shared/errors.ts';
import { physicalName } from '../compile/names.ts';
import {
  isCorrectedClockSkew,
  isOutcomeUnknown,
  isThrottled,
  isTransient,
  isUnreachable,
  UNREACHABLE,
} from './errors.ts';
import { ServerClock } from './server-clock.ts';
import type { Settings } from './settings.ts';
import type { Address } from './url.ts';

/** The actions this dialect sends itself. */
interface Actions {
  BatchExecuteStatement: [Sdk.BatchExecuteStatementCommandInput, Sdk.BatchExecuteStatementCommandOutput];
  BatchGetItem: [Sdk.BatchGetItemCommandInput, Sdk.BatchGetItemCommandOutput];
  CreateTable: [Sdk.CreateTableCommandInput, Sdk.CreateTableCommandOutput];
  DeleteTable: [Sdk.DeleteTableCommandInput, Sdk.DeleteTableCommandOutput];
  DescribeContinuousBackups: [Sdk.DescribeContinuousBackupsCommandInput, Sdk.DescribeContinuousBackupsCommandOutput];
  DescribeTable: [Sdk.DescribeTableCommandInput, Sdk.DescribeTableCommandOutput];
  DescribeTimeToLive: [Sdk.DescribeTimeToLiveCommandInput, Sdk.DescribeTimeToLiveCommandOutput];
  GetItem: [Sdk.GetItemCommandInput, Sdk.GetItemCommandOutput];
  ListTagsOfResource: [Sdk.ListTagsOfResourceCommandInput, Sdk.ListTagsOfResourceCommandOutput];
  ListTables: [Sdk.ListTablesCommandInput, Sdk.ListTablesCommandOutput];
  Query: [Sdk.QueryCommandInput, Sdk.QueryCommandOutput];
  Scan: [Sdk.ScanCommandInput, Sdk.ScanCommandOutput];
  TransactWriteItems: [Sdk.TransactWriteItemsCommandInput, Sdk.TransactWriteItemsCommandOutput];
  UpdateItem: [Sdk.UpdateItemCommandInput, Sdk.UpdateItemCommandOutput];
  UpdateTable: [Sdk.UpdateTableCommandInput, Sdk.UpdateTableCommandOutput];
  UpdateTimeToLive: [Sdk.UpdateTimeToLiveCommandInput, Sdk.UpdateTimeToLiveCommandOutput];
}
export type Action = keyof Actions;
export type Input<A extends Action> = Actions[A][0];
export type Output<A extends Action> = Actions[A][1];

export interface SendOptions {
  /** Called each time DynamoDB throttles the request. */
  readonly onThrottled?: () => void;
}

const FIRST_RETRY_MS = 25;
const MAX_RETRY_MS = 5_000;

/** Sends requests to DynamoDB: the SDK's client with retries, the table prefix and the server's clock. */
export class DynamoClient {
  readonly clock = new ServerClock();
  readonly prefix: string;
  readonly retryTimeoutMs: number;
  readonly #sdk: DynamoSdk;
  readonly #client: Sdk.DynamoDBClient;
  #isClosed = false;

  constructor(sdk: DynamoSdk, client: Sdk.DynamoDBClient, prefix: string, retryTimeoutMs: number) {
    this.#sdk = sdk;
    this.#client = client;
    this.prefix = prefix;
    this.retryTimeoutMs = retryTimeoutMs;
    // It copies every response, even for the logger that does nothing.
    client.middlewareStack.remove('loggerMiddleware');
    const { clock } = this;
    client.middlewareStack.add(
      (next) => async (args) => {
        const sent = Date.now();
        const result = await next(args);
        const { headers } = result.response as { readonly headers?: Readonly<Record<string, string>> };
        clock.observe(headers?.date, sent, Date.now());
        return result;
      },
      { step: 'deserialize', name: 'svcClock', priority: 'low' },
    );
  }

  table(name: string): string {
    return physicalName(this.prefix, name);
  }

  /** Sends a request once, without retries. */
  async sendOnce<A extends Action>(action: A, input: Input<A>): Promise<Output<A>> {
    return (await this.#dispatch(action, input)) as Output<A>;
  }

  /** Sends a first request, which also sets the server's clock. Throws `connection_failed` without a response in time. */
  async assertReachable(timeoutMs: number): Promise<void> {
    const abortSignal = AbortSignal.timeout(timeoutMs);
    try {
      await this.#dispatch('ListTables', { Limit: 1 }, abortSignal);
    } catch (error) {
      if (!abortSignal.aborted) throw error;
      throw mappedError(UNREACHABLE, { why: `It did not respond within ${timeoutMs} ms.`, cause: error });
    }
  }

  /** Sends a user's request once. Throws `migration_invalid` for an action the SDK does not have. */
  async sendRaw(action: string, input: object): Promise<Readonly<Record<string, unknown>>> {
    if (`${action}Command` in this.#sdk) return (await this.#dispatch(action, input)) as Record<string, unknown>;
    throw new SvcError('migration_invalid', `The DynamoDB driver has no action "${action}".`, {
      state: 'Nothing was changed.',
      next: ['Correct the action, or update @aws-sdk/client-dynamodb.'],
    });
  }

  async #dispatch(action: string, input: object, abortSignal?: AbortSignal): Promise<unknown> {
    // The SDK's client would open new sockets, which nobody closes.
    if (this.#isClosed) throw new SvcError('connection_lost', 'The connection is closed.');
    // The SDK names the class of each action `<Action>Command`, which its types do not relate.
    const Command = this.#sdk[`${action}Command` as keyof DynamoSdk] as unknown as new (input: object) => never;
    try {
      return await this.#client.send(new Command(input), { ...(abortSignal && { abortSignal }) });
    } catch (error) {
      if (!isCorrectedClockSkew(error)) throw error;
      return await this.#client.send(new Command(input), { ...(abortSignal && { abortSignal }) });
    }
  }

  /** Sends an idempotent request, with retries for `retryTimeoutMs`. */
  send<A extends Action>(action: A, input: Input<A>, options?: SendOptions): Promise<Output<A>> {
    return this.retry(() => this.sendOnce(action, input), options);
  }

  /** Retries a request that DynamoDB throttled or did not answer. */
  async retry<T>(request: () => Promise<T>, { onThrottled }: SendOptions = {}): Promise<T> {
    const deadline = performance.now() + this.retryTimeoutMs;
    let pause = FIRST_RETRY_MS;
    for (;;) {
      try {
        return await request();
      } catch (error) {
        if (isThrottled(error)) onThrottled?.();
        else if (!isTransient(error) && !isOutcomeUnknown(error) && !isUnreachable(error)) throw error;
        if (performance.now() + pause > deadline) throw error;
      }
      await wait(pause * (0.5 + Math.random() / 2));
      pause = Math.min(pause * 2, MAX_RETRY_MS);
    }
  }

  /** Retries only requests that certainly had no effect. Returns `unknown` if the request may have taken effect. */
  sendNonIdempotent<A extends Action>(action: A, input: Input<A>): Promise<Output<A> | 'unknown'> {
    const send = () =>
      this.sendOnce(action, input).catch((error: unknown) => {
        if (isOutcomeUnknown(error)) return 'unknown' as const;
        throw error;
      });
    return this.retry(send);
  }

  close(): void {
    this.#isClosed = true;
    this.#client.destroy();
  }
}

export type DynamoSdk = typeof import('@aws-sdk/client-dynamodb');

/** Enough for the concurrent requests of a data move and the lease. */
const MAX_SOCKETS = 64;

const driver: Driver<DynamoSdk> = {
  name: 'The driver of DynamoDB',
  package: '@aws-sdk/client-dynamodb',
  load: () => import('@aws-sdk/client-dynamodb'),
};

/** Throws `driver_missing`. Loaded on connect only, because loading takes 100 ms. */
export function loadSdk({ root }: Pick<Settings, 'root'>): Promise<DynamoSdk> {
  return loadDriver(driver, root);
}

/** The SDK's own retries are off: after a lost response a retried conditional write would report a conflict. */
export function createSdkClient(sdk: DynamoSdk, address: Address, settings: Settings): Sdk.DynamoDBClient {
  return withoutNodeWarning(
    () =>
      new sdk.DynamoDBClient({
        region: address.region,
        ...(address.endpoint !== undefined && { endpoint: address.endpoint }),
        ...(address.credentials && { credentials: address.credentials }),
        maxAttempts: 1,
        requestHandler: {
          connectionTimeout: settings.connectTimeoutMs,
          requestTimeout: settings.requestTimeoutMs,
          throwOnRequestTimeout: true,
          httpAgent: { keepAlive: true, maxSockets: MAX_SOCKETS },
          httpsAgent: { keepAlive: true, maxSockets: MAX_SOCKETS },
        },
      }),
  );
}

const WARNING_SWITCH = 'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED';

/** On Node 20 the SDK warns about its future versions on stderr. */
function withoutNodeWarning<T>(create: () => T): T {
  const before = process.env[WARNING_SWITCH];
  process.env[WARNING_SWITCH] = 'true';
  try {
    return create();
  } finally {
    if (before === undefined) delete process.env[WARNING_SWITCH];
    else process.env[WARNING_SWITCH] = before;
  }
}
