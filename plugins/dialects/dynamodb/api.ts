import { setTimeout as wait } from 'node:timers/promises';
import type * as Sdk from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import { ServerClock } from './clock.ts';
import type { Sdk as Driver } from './driver.ts';
import { isMistimed, isNotReached, isPassing, isThrottled, isUnknown } from './errors.ts';
import { physicalName } from './names.ts';

/** The actions that we send ourselves. */
interface Actions {
  BatchExecuteStatement: [Sdk.BatchExecuteStatementCommandInput, Sdk.BatchExecuteStatementCommandOutput];
  BatchGetItem: [Sdk.BatchGetItemCommandInput, Sdk.BatchGetItemCommandOutput];
  CreateTable: [Sdk.CreateTableCommandInput, Sdk.CreateTableCommandOutput];
  DeleteTable: [Sdk.DeleteTableCommandInput, Sdk.DeleteTableCommandOutput];
  DescribeTable: [Sdk.DescribeTableCommandInput, Sdk.DescribeTableCommandOutput];
  DescribeTimeToLive: [Sdk.DescribeTimeToLiveCommandInput, Sdk.DescribeTimeToLiveCommandOutput];
  GetItem: [Sdk.GetItemCommandInput, Sdk.GetItemCommandOutput];
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
type Output<A extends Action> = Actions[A][1];

export interface Sending {
  /** Told of each time that the engine was too busy. */
  readonly onThrottled?: () => void;
}

const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 5_000;

/** What talks to DynamoDB: one client, its prefix and the server's clock. */
export class Api {
  readonly clock = new ServerClock();
  readonly prefix: string;
  readonly patienceMs: number;
  readonly #sdk: Driver;
  readonly #client: Sdk.DynamoDBClient;

  constructor(sdk: Driver, client: Sdk.DynamoDBClient, prefix: string, patienceMs: number) {
    this.#sdk = sdk;
    this.#client = client;
    this.prefix = prefix;
    this.patienceMs = patienceMs;
    const { clock } = this;
    client.middlewareStack.add(
      (next) => async (args) => {
        const sent = Date.now();
        const result = await next(args);
        const { headers } = result.response as { readonly headers?: Readonly<Record<string, string>> };
        clock.heard(headers?.date, sent, Date.now());
        return result;
      },
      { step: 'deserialize', name: 'svcClock', priority: 'low' },
    );
  }

  table(name: string): string {
    return physicalName(this.prefix, name);
  }

  /** Sends a request once, whatever comes of it. */
  async once<A extends Action>(action: A, input: Input<A>): Promise<Output<A>> {
    return (await this.#dispatch(action, input)) as Output<A>;
  }

  /** Any action that the driver knows, in a user's words. Throws `migration_invalid` for others. */
  async foreign(action: string, input: object): Promise<Readonly<Record<string, unknown>>> {
    if (`${action}Command` in this.#sdk) return (await this.#dispatch(action, input)) as Record<string, unknown>;
    throw new SvcError('migration_invalid', `The DynamoDB driver knows no action "${action}".`, {
      state: 'Nothing was changed.',
      next: ['Correct the action, or update @aws-sdk/client-dynamodb.'],
    });
  }

  async #dispatch(action: string, input: object): Promise<unknown> {
    const Command = this.#sdk[`${action}Command` as keyof Driver] as unknown as new (input: object) => never;
    try {
      return await this.#client.send(new Command(input));
    } catch (error) {
      if (!isMistimed(error)) throw error;
      return await this.#client.send(new Command(input));
    }
  }

  /**
   * Sends a request that may be sent twice, a read or a write under a condition that its repeat keeps, until it is
   * answered or patience is over.
   */
  send<A extends Action>(action: A, input: Input<A>, sending?: Sending): Promise<Output<A>> {
    return this.persist(() => this.once(action, input), sending);
  }

  /** Goes on trying what the engine was too busy for or did not answer. */
  async persist<T>(work: () => Promise<T>, { onThrottled }: Sending = {}): Promise<T> {
    const deadline = performance.now() + this.patienceMs;
    let pause = FIRST_PAUSE_MS;
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (isThrottled(error)) onThrottled?.();
        else if (!isPassing(error) && !isUnknown(error) && !isNotReached(error)) throw error;
        if (performance.now() + pause > deadline) throw error;
      }
      await wait(pause * (0.5 + Math.random() / 2));
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }

  /** For DDL and leases: an unknown outcome is for the caller to look into, only what surely did nothing goes again. */
  async attempt<A extends Action>(action: A, input: Input<A>): Promise<Output<A> | 'unknown'> {
    const deadline = performance.now() + this.patienceMs;
    let pause = FIRST_PAUSE_MS;
    for (;;) {
      try {
        return await this.once(action, input);
      } catch (error) {
        if (isUnknown(error)) return 'unknown';
        if ((!isPassing(error) && !isNotReached(error)) || performance.now() + pause > deadline) throw error;
      }
      await wait(pause * (0.5 + Math.random() / 2));
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }

  close(): void {
    this.#client.destroy();
  }
}
