import { runOne } from '../migration/engine.ts';
import type { Ledger } from '../migration/ledger.ts';
import type { Migration } from '../migration/migration.ts';
import { planMigration } from '../migration/plan.ts';
import { draftFor } from '../migration/references.ts';
import { underLock } from '../migration/session.ts';
import { freeTag, nameOfTag } from '../migration/tag.ts';
import { invertAll } from '../schema/invert.ts';
import { lossy } from '../schema/lossy.ts';
import type { SchemaModel } from '../schema/model.ts';
import type { NameLimit } from '../schema/names.ts';
import type { Operation } from '../schema/operation.ts';
import type { Adapter } from './adapter.ts';
import { readForeign, withDoubts } from './foreign.ts';

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

  get names(): NameLimit {
    return this.#adapter.dialect.capabilities.names;
  }

  async run(request: Request): Promise<SchemaResult> {
    const known = this.#known;
    this.#known = undefined;
    return underLock(this.#adapter, { known }, async (run) => {
      const { connection } = this.#adapter;
      const draft = await draftFor(this.#adapter, run.ledger, [request.operation]);
      const foreign = await readForeign(request.operation, draft, connection);
      const certain = automatic(request, draft, run.ledger);
      const migration = foreign.size === 0 ? certain : await withDoubts(certain, foreign, draft, this.#adapter);
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

function automatic(request: Request, model: SchemaModel, ledger: Ledger): Migration {
  const { operation } = request;
  const up = [...(request.first?.(model) ?? []), operation];
  const down = invertAll(up, model);
  const lost = lossy(operation, model);
  // In the order of application: exported as files they run in the order of their tags.
  const tag = freeTag(request.name, new Date(), (tag) => ledger.entries.has(tag), ledger.lastApiTag);
  return {
    tag,
    name: operation.type === 'createCollection' ? operation.name : nameOfTag(tag),
    type: operation.type,
    ...carried(operation),
    up,
    down,
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
