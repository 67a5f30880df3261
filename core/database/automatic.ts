import { runOne } from '../migration/engine.ts';
import type { Ledger } from '../migration/ledger.ts';
import type { Migration } from '../migration/migration.ts';
import { planMigration } from '../migration/plan.ts';
import { underLock } from '../migration/session.ts';
import { freeTag, nameOfTag } from '../migration/tag.ts';
import { needs } from '../migration/touches.ts';
import type { Draft } from '../schema/draft.ts';
import { invertAll } from '../schema/invert.ts';
import { lossy } from '../schema/lossy.ts';
import type { SchemaModel } from '../schema/model.ts';
import type { Operation } from '../schema/operation.ts';
import type { Adapter } from './adapter.ts';

export interface SchemaResult {
  readonly migration: Migration;
  readonly durationMs: number;
  /** What was sent to the database. */
  readonly statements: readonly string[];
}

/** What one call of the schema API asks for. */
export interface Request {
  /** The tag's name: the verb and what it is about. */
  readonly name: string;
  /** The operation whose properties the migration object carries. */
  readonly operation: Operation;
  /** Operations that must go before it, seen from the model as it is. */
  readonly first?: (model: SchemaModel) => readonly Operation[];
}

/** Turns calls into migrations: tagged under the lock, inverted from the model, applied and recorded. */
export class AutomaticMigrations {
  readonly #adapter: Adapter;
  #known: { readonly ledger: Ledger; readonly epoch: number } | undefined;

  constructor(adapter: Adapter) {
    this.#adapter = adapter;
  }

  get identifierBytes(): number {
    return this.#adapter.dialect.capabilities.identifierBytes;
  }

  run(request: Request): Promise<SchemaResult> {
    const known = this.#known;
    this.#known = undefined;
    return underLock(this.#adapter, { known }, async (run) => {
      const { connection } = this.#adapter;
      const draft = await run.ledger.draft(connection);
      const migration = automatic(request, await withForeign(draft, request.operation, this.#adapter), (tag) =>
        run.ledger.entries.has(tag),
      );
      const { durationMs, statements } = await runOne(
        run,
        await planMigration(this.#adapter, migration, 'up', 'api', draft),
      );
      run.ledger.keep(draft);
      this.#known = { ledger: run.ledger, epoch: run.epoch };
      return { migration, durationMs, statements };
    });
  }
}

/** Tables that svc did not make are read from the catalog, so that a way back can be written for them too. */
async function withForeign(draft: Draft, operation: Operation, { connection }: Adapter): Promise<Draft> {
  const mayExist = operation.type === 'createCollection' && operation.options?.sqlOptions?.ifNotExists === true;
  const missing = (mayExist ? [operation.name] : needs(operation)).filter((name) => !draft.has(name));
  if (missing.length > 0)
    for (const [name, collection] of await connection.introspect(missing)) draft.set(name, collection);
  return draft;
}

function automatic(request: Request, model: SchemaModel, taken: (tag: string) => boolean): Migration {
  const { operation } = request;
  const up = [...(request.first?.(model) ?? []), operation];
  const down = invertAll(up, model);
  const lost = lossy(operation, model);
  const tag = freeTag(request.name, new Date(), taken);
  return {
    tag,
    name: operation.type === 'createCollection' ? operation.name : nameOfTag(tag),
    type: operation.type,
    ...carried(operation),
    up,
    down,
    ...(down.length === 0 && { irreversible: 'It made nothing that a rollback could take away.' }),
    ...(lost.length > 0 && { lossy: lost }),
  };
}

/** The operation's own properties, as SPEC 2.12 lists them. */
function carried(operation: Operation): Partial<Migration> {
  switch (operation.type) {
    case 'createCollection':
      return { collection: operation.name, fields: operation.fields };
    case 'addField':
    case 'dropField':
    case 'modifyField':
      return { collection: operation.collection, field: operation.field };
    case 'raw':
      return {};
    default:
      return { collection: operation.collection };
  }
}
