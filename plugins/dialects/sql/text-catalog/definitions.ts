import { allRows, type RecordDefinition, type RecordStore, type Versioned } from '../../../../core/records.ts';
import { deserializeCollection, type SerializedCollection } from '../../../../core/schema/model.ts';
import { lockLostError } from '../../shared/errors.ts';
import type { TextCatalogStep } from './compile.ts';
import { readTextCatalog, type TextCatalog } from './read.ts';
import type { TextCatalogSyntax } from './syntax.ts';

/** The definition of a table as svc wrote it, and the text that the engine made of it. */
export interface StoredDefinition {
  readonly name: string;
  readonly definition: SerializedCollection;
  readonly engineText: string;
}

export const definitionsTable: RecordDefinition<StoredDefinition> = {
  collection: '_svc_definitions',
  key: 'name',
  columns: { name: { type: 'string' }, definition: { type: 'json' }, engineText: { type: 'text' } },
  indexes: [{ name: 'byName', equals: [], sort: 'name' }],
};

/** The statements of the catalog by table, in an order that does not depend on the engine's. */
export type CatalogTexts = ReadonlyMap<string, readonly string[]>;

const joined = (texts: CatalogTexts, table: string): string | undefined => texts.get(table)?.join('\n');

async function readStored(
  store: RecordStore<StoredDefinition>,
): Promise<ReadonlyMap<string, Versioned<StoredDefinition>>> {
  const stored = new Map<string, Versioned<StoredDefinition>>();
  for await (const row of allRows(store, 'byName', { limit: 1000 })) stored.set(row.record.name, row);
  return stored;
}

/** The catalog: a table is read from its stored definition while its text is the stored one, otherwise from its text. */
export async function readStoredCatalog(
  syntax: TextCatalogSyntax,
  texts: CatalogTexts,
  store: RecordStore<StoredDefinition>,
): Promise<TextCatalog> {
  const stored = await readStored(store);
  const unchanged = [...stored.values()].filter(({ record }) => joined(texts, record.name) === record.engineText);
  const names = new Set(unchanged.map(({ record }) => record.name));
  const others = [...texts].flatMap(([table, statements]) => (names.has(table) ? [] : statements));
  const { model, unsupportedObjects } = readTextCatalog(syntax, others);
  const definitions = unchanged.map(({ record }) => deserializeCollection(record.definition));
  return { model: new Map([...model, ...definitions.map((one) => [one.name, one] as const)]), unsupportedObjects };
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
      const text = joined(before, table);
      // A table that was changed outside svc keeps a text that differs from the stored one, so that the change is seen.
      const isKnown = rebuilds || text === undefined || text === this.#current(table)?.engineText;
      this.#changed.set(table, undefined);
      if (definition === undefined) continue;
      const engineText = joined(this.#texts, definition.name);
      const { name } = definition;
      this.#changed.set(name, isKnown && engineText !== undefined ? { name, definition, engineText } : undefined);
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
