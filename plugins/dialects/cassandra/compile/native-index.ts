import { SvcError } from '../../../../core/errors.ts';
import type { Index } from '../../../../core/schema/model.ts';
import { quoteIdentifier } from './names.ts';
import { quoteLiteral } from './table-properties.ts';
import { nameOf, TokenReader } from './tokens.ts';

/** The definition of an index, as it follows the name of the table. */
export interface IndexDefinition {
  readonly column: string;
  /** What of a collection is indexed; absent for the column itself. */
  readonly part?: string;
  /** Absent for a secondary index (2i). */
  readonly using?: string;
  readonly options: Readonly<Record<string, string>>;
}

const PARTS: ReadonlySet<string> = new Set(['keys', 'values', 'entries', 'full']);

/** The last part of the name of a class. `StorageAttachedIndex` is `sai`. */
export function indexClass(name: string): string | undefined {
  if (/^legacy_local_table$/i.test(name)) return undefined;
  return /^(.*\.)?(sai|StorageAttachedIndex)$/i.test(name) ? 'sai' : name;
}

/** Reads `(keys(tags)) USING 'sai' WITH OPTIONS = {…}`; undefined for anything else. */
function parseIndex(text: string): IndexDefinition | undefined {
  const reader = new TokenReader(text);
  if (!reader.take('(')) return undefined;
  const hasPart = reader.peek(1)?.text === '(';
  const part = hasPart ? reader.next()?.text.toLowerCase() : undefined;
  if (hasPart && !reader.take('(')) return undefined;
  const column = reader.next();
  if (column?.kind !== 'word' && !column?.text.startsWith('"')) return undefined;
  if ((part !== undefined && (!PARTS.has(part) || !reader.take(')'))) || !reader.take(')')) return undefined;
  const using = reader.take('using') ? readString(reader) : undefined;
  const options = reader.take('with', 'options', '=') ? readMap(reader) : {};
  if (!options || !reader.isAtEnd) return undefined;
  const name = using === undefined ? undefined : indexClass(using);
  return {
    column: nameOf(column),
    ...(part !== undefined && part !== 'values' && { part }),
    ...(name !== undefined && { using: name }),
    options,
  };
}

function readString(reader: TokenReader): string {
  const token = reader.next();
  return token?.kind === 'quoted' && token.text.startsWith("'") ? nameOf(token) : '';
}

function readMap(reader: TokenReader): Readonly<Record<string, string>> | undefined {
  const entries: Record<string, string> = {};
  if (!reader.take('{')) return undefined;
  while (!reader.take('}')) {
    const name = readString(reader);
    if (name === '' || !reader.take(':')) return undefined;
    const value = reader.next();
    if (value === undefined) return undefined;
    entries[name] = nameOf(value);
    if (!reader.take(',') && reader.peek()?.text !== '}') return undefined;
  }
  return entries;
}

/** The text of a definition, in one spelling. */
export function indexText({ column, part, using, options }: IndexDefinition): string {
  const target = part === undefined ? quoteIdentifier(column) : `${part}(${quoteIdentifier(column)})`;
  const entries = Object.entries(options)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${quoteLiteral(name)}: ${quoteLiteral(value)}`);
  return [
    `(${target})`,
    ...(using === undefined ? [] : [`USING ${quoteLiteral(using)}`]),
    ...(entries.length > 0 ? [`WITH OPTIONS = {${entries.join(', ')}}`] : []),
  ].join(' ');
}

/** The index of a definition, with a native one where svc has no words for it. */
export function indexOf(name: string, definition: IndexDefinition): Index {
  const { column, part, using, options } = definition;
  const columns = [{ name: column }];
  const isPlain = part === undefined && Object.keys(options).length === 0;
  if (isPlain && using === undefined) return { name, columns };
  if (isPlain && using === 'sai') return { name, columns, cassandraOptions: { using } };
  return { name, columns, native: indexText(definition) };
}

/** The definition of an index. Throws `schema_invalid` for a native one that is not one, or is not on its column. */
export function definitionOf({ name, columns, native, cassandraOptions }: Index, table: string): IndexDefinition {
  const column = columns[0]?.name ?? '';
  if (native === undefined)
    return { column, ...(cassandraOptions?.using && { using: cassandraOptions.using }), options: {} };
  const parsed = parseIndex(native);
  if (parsed?.column === column && cassandraOptions === undefined) return parsed;
  throw new SvcError('schema_invalid', `The index "${name}" of "${table}" cannot be used on Cassandra.`, {
    why: cassandraOptions
      ? 'It has "native", which says what cassandraOptions would.'
      : parsed
        ? `Its native definition is on "${parsed.column}", and its columns are "${column}".`
        : `Its native definition is not what follows the name of the table in CREATE INDEX: ${native}`,
    next: [`For example: (keys(tags)) USING 'sai' WITH OPTIONS = {'case_sensitive': 'false'}`],
    details: { path: ['native'] },
  });
}

/** The index with its native definition in one spelling; as written, if it is not one. */
export function withCatalogDefinition(index: Index): Index {
  const parsed = index.native === undefined ? undefined : parseIndex(index.native);
  return parsed ? indexOf(index.name, parsed) : index;
}
