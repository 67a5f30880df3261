import { isDeepStrictEqual } from 'node:util';
import type { TableDescription, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { alreadyExistsError } from '../../../../core/schema/find-or-throw.ts';
import { listTables } from '../catalog/introspect.ts';
import {
  collectionFrom,
  creatingEntryWrite,
  entryWrite,
  type RegistryEntry,
  readEntries,
  readEntry,
  type TableDefinition,
} from '../catalog/registry.ts';
import type { DynamoSegment, DynamoStep } from '../compile/step.ts';
import { waitWhileDeleting } from '../connection/wait-for-table.ts';
import type { RunContext } from './run-context.ts';

type CreateStep = Extract<DynamoStep, { kind: 'create' }>;

/** From this number of tables on, one ListTables request per hundred tables replaces one DescribeTable request each. */
const LIST_ALL_FROM = 10;
const LIST_MAX_AGE_MS = 5_000;

/**
 * The preflight of each table that the segments create, in order. Where one creation follows another, the second preflight
 * runs during the first creation, because a preflight takes as long as creating the table.
 */
export class CreatePreflights {
  readonly #context: RunContext;
  readonly #steps: readonly DynamoStep[];
  #position = 0;
  /** Only the lock holder writes entries, so they stay valid until a step affects the table. */
  #entries: Promise<ReadonlyMap<string, RegistryEntry>> | undefined;
  #listed: { readonly names: Promise<ReadonlySet<string>>; readonly at: number } | undefined;
  readonly #affected = new Set<string>();
  #prefetched: Promise<CreatePreflight> | undefined;

  constructor(context: RunContext, segments: readonly DynamoSegment[]) {
    this.#context = context;
    this.#steps = segments.flatMap(({ statements }) => statements.map(({ run }) => run));
  }

  /** The next step creates a table that an earlier step affected, so that step's writes must come first. */
  get mustFlushFirst(): boolean {
    const step = this.#steps[this.#position];
    return step?.kind === 'create' && this.#affected.has(step.table);
  }

  /** The preflight of the next step; undefined if it creates no table. */
  async next(): Promise<CreatePreflight | undefined> {
    const step = this.#steps[this.#position++];
    const prefetched = this.#prefetched;
    this.#prefetched = undefined;
    if (!step || step.kind === 'raw') return undefined;
    if (step.kind !== 'create') {
      this.#affected.add(step.table);
      return undefined;
    }
    const preflight = await (prefetched ?? this.#preflight(step));
    this.#affected.add(step.table);
    const following = this.#steps[this.#position];
    if (following?.kind === 'create' && !this.#affected.has(following.table)) {
      this.#prefetched = this.#preflight(following);
      // An error is thrown when its turn comes.
      this.#prefetched.catch(() => undefined);
    }
    return preflight;
  }

  #preflight({ table, definition }: CreateStep): Promise<CreatePreflight> {
    if (this.#affected.has(table)) {
      return preflightCreate(this.#context, table, definition, readEntry(this.#context.state, table));
    }
    return preflightCreate(this.#context, table, definition, this.#readEntry(table), this.#existingTables());
  }

  #createdTables(): string[] {
    const created = this.#steps.filter((step) => step.kind === 'create').map((step) => step.table);
    return [...new Set(created)];
  }

  #existingTables(): Promise<ReadonlySet<string>> | undefined {
    if (this.#createdTables().length < LIST_ALL_FROM) return undefined;
    this.#listed ??= {
      names: listTables(this.#context.client).then((names) => new Set(names)),
      at: performance.now(),
    };
    return performance.now() - this.#listed.at < LIST_MAX_AGE_MS ? this.#listed.names : undefined;
  }

  async #readEntry(table: string): Promise<RegistryEntry | undefined> {
    const { client, state } = this.#context;
    this.#entries ??= readEntries(client, state, this.#createdTables());
    return (await this.#entries).get(table);
  }
}

/** The state of a table and its registry entry before it is created. */
export interface CreatePreflight {
  readonly existing: TableDescription | undefined;
  /** An earlier attempt announced the same table and may have created it. */
  readonly interrupted: boolean;
  /** The registry entry of the created table. */
  readonly entry: TransactWriteItem;
  /** The registry entry of a table that is being created, written before the request; empty if it is there already. */
  readonly announcement: readonly TransactWriteItem[];
}

/** Throws `collection_exists` for a table that no registry entry announces. `listed` are the existing tables, if known. */
async function preflightCreate(
  { client, state, assertLease }: RunContext,
  table: string,
  definition: TableDefinition,
  entry: Promise<RegistryEntry | undefined>,
  listed?: Promise<ReadonlySet<string>>,
): Promise<CreatePreflight> {
  const findTable = async () =>
    (await listed)?.has(table) === false ? undefined : waitWhileDeleting(client, client.table(table), assertLease);
  const [registered, existing] = await Promise.all([entry, findTable()]);
  const interrupted =
    registered?.creating === true && isDeepStrictEqual(registered.collection, collectionFrom(definition));
  if (existing && !interrupted) throw alreadyExistsError('collection', table);
  const write = entryWrite(state, table, definition);
  return { existing, interrupted, entry: write, announcement: interrupted ? [] : [creatingEntryWrite(write)] };
}
