import { isDeepStrictEqual } from 'node:util';
import { allRows, type RecordDefinition, type RecordStore, type Versioned } from '../../../../core/records.ts';
import { type Collection, deserializeCollection, type SerializedCollection } from '../../../../core/schema/model.ts';
import { lockLostError } from '../../shared/errors.ts';
import type { TextCatalogStep } from './compile.ts';
import { readConstraintTexts, readTextCatalog, type TextCatalog } from './read.ts';
import type { TextCatalogSyntax } from './syntax.ts';

/** The definition of a table as svc wrote it, and the texts that the engine made of it, as a JSON array. */
export interface StoredDefinition {
  readonly name: string;
  readonly definition: SerializedCollection;
  readonly engineTexts: string;
}

export const definitionsTable: RecordDefinition<StoredDefinition> = {
  collection: '_svc_definitions',
  key: 'name',
  columns: { name: { type: 'string' }, definition: { type: 'json' }, engineTexts: { type: 'text' } },
  indexes: [{ name: 'byName', equals: [], sort: 'name' }],
};

/** The statements of the catalog by table, in an order that does not depend on the engine's. */
export type CatalogTexts = ReadonlyMap<string, readonly string[]>;

function textsOf(texts: CatalogTexts, table: string): string | undefined {
  const own = texts.get(table);
  return own && JSON.stringify(own);
}

async function readStored(
  store: RecordStore<StoredDefinition>,
): Promise<ReadonlyMap<string, Versioned<StoredDefinition>>> {
  const stored = new Map<string, Versioned<StoredDefinition>>();
  for await (const row of allRows(store, 'byName', { limit: 1000 })) stored.set(row.record.name, row);
  return stored;
}

/**
 * The catalog. A table is read from its stored definition while its texts are the stored ones; of a table that was changed
 * outside svc, the changed parts are read from its texts.
 */
export async function readStoredCatalog(
  syntax: TextCatalogSyntax,
  texts: CatalogTexts,
  store: RecordStore<StoredDefinition>,
): Promise<TextCatalog> {
  const stored = await readStored(store);
  const model = new Map<string, Collection>();
  const unsupportedObjects: TextCatalog['unsupportedObjects'][number][] = [];
  for (const [table, statements] of texts) {
    const record = stored.get(table)?.record;
    const definition = record && deserializeCollection(record.definition);
    if (definition && record.engineTexts === JSON.stringify(statements)) {
      model.set(table, definition);
      continue;
    }
    const read = readTextCatalog(syntax, statements);
    const found = read.model.get(table);
    const known = record && (JSON.parse(record.engineTexts) as string[]);
    const merged = found && definition && known ? unchangedParts(syntax, definition, known, found, statements) : found;
    // A field that comes from the definition was not read from its text.
    const isRead = (field: string) => merged?.fields.get(field) === found?.fields.get(field);
    unsupportedObjects.push(...read.unsupportedObjects.filter(({ field }) => field === undefined || isRead(field)));
    if (merged) model.set(table, merged);
  }
  return { model, unsupportedObjects };
}

/** The table as read from its texts, with the parts of its definition whose text is still the same. */
function unchangedParts(
  syntax: TextCatalogSyntax,
  definition: Collection,
  knownTexts: readonly string[],
  found: Collection,
  texts: readonly string[],
): Collection {
  const known = readTextCatalog(syntax, knownTexts).model.get(definition.name);
  const merged = <T>(
    read: ReadonlyMap<string, T>,
    before: ReadonlyMap<string, T> | undefined,
    own: ReadonlyMap<string, T>,
  ) =>
    new Map(
      [...read].map(([name, one]) => [name, (isDeepStrictEqual(before?.get(name), one) && own.get(name)) || one]),
    );
  const isSameConstraints = isDeepStrictEqual(readConstraintTexts(knownTexts), readConstraintTexts(texts));
  return {
    ...definition,
    fields: merged(found.fields, known?.fields, definition.fields),
    indexes: merged(found.indexes, known?.indexes, definition.indexes),
    constraints: isSameConstraints ? definition.constraints : found.constraints,
  };
}

/** Follows the definitions of tables through the statements of a transaction, and stores them at its end. */
export class DefinitionRecorder {
  readonly #store: RecordStore<StoredDefinition>;
  readonly #readTexts: () => Promise<CatalogTexts>;
  readonly #stored: ReadonlyMap<string, Versioned<StoredDefinition>>;
  /** Undefined for a table that was dropped, or whose text says more than its definition. */
  readonly #changed = new Map<string, StoredDefinition | undefined>();
  #texts: CatalogTexts;

  private constructor(
    store: RecordStore<StoredDefinition>,
    readTexts: () => Promise<CatalogTexts>,
    stored: ReadonlyMap<string, Versioned<StoredDefinition>>,
    texts: CatalogTexts,
  ) {
    this.#store = store;
    this.#readTexts = readTexts;
    this.#stored = stored;
    this.#texts = texts;
  }

  static async start(
    store: RecordStore<StoredDefinition>,
    readTexts: () => Promise<CatalogTexts>,
  ): Promise<DefinitionRecorder> {
    return new DefinitionRecorder(store, readTexts, await readStored(store), await readTexts());
  }

  /** Call it after each statement. */
  async record({ definitions = [], rebuilds }: TextCatalogStep): Promise<void> {
    const before = this.#texts;
    this.#texts = await this.#readTexts();
    for (const { table, definition } of definitions) {
      const text = textsOf(before, table);
      // A table that was changed outside svc keeps a text that differs from the stored one, so that the change is seen.
      const isKnown = rebuilds || text === undefined || text === this.#current(table)?.engineTexts;
      this.#changed.set(table, undefined);
      if (definition === undefined) continue;
      const engineTexts = textsOf(this.#texts, definition.name);
      const { name } = definition;
      this.#changed.set(name, isKnown && engineTexts !== undefined ? { name, definition, engineTexts } : undefined);
    }
  }

  /** Call it at the end of the transaction. Throws `lock_lost` if another process has stored a definition. */
  async write(): Promise<void> {
    for (const [name, next] of this.#changed) {
      const version = this.#stored.get(name)?.version;
      if (next === undefined && version === undefined) continue;
      const written =
        next === undefined
          ? await this.#store.remove(name, version ?? 0)
          : version === undefined
            ? await this.#store.insert(next)
            : await this.#store.replace(name, version, next);
      if (written !== 'removed' && written !== 'inserted' && written !== 'replaced') throw lockLostError();
    }
  }

  #current(table: string): StoredDefinition | undefined {
    return this.#changed.has(table) ? this.#changed.get(table) : this.#stored.get(table)?.record;
  }
}
