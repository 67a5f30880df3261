import { type FreshKeyspace, freshKeyspace } from './cassandra.ts';
import type { RemadeCases } from './remade-cases.ts';
import type { Facts } from './remake-files.ts';

/** What tables use. */
const SETUP = [
  'CREATE TYPE address (street text, zip int)',
  'CREATE TYPE person (name text, homes list<frozen<address>>, "Age" int)',
];

/** One table with a column for each type: a statement takes a while. */
const columns = (definitions: Readonly<Record<string, string>>): string =>
  `CREATE TABLE @ (id int PRIMARY KEY, ${Object.entries(definitions)
    .map(([name, type]) => `${name} ${type}`)
    .join(', ')})`;

const options = (definitions: Readonly<Record<string, string>>): RemadeCases =>
  Object.fromEntries(
    Object.entries(definitions).map(([name, text]) => [
      name,
      `CREATE TABLE @ (id int PRIMARY KEY, c text) WITH ${text}`,
    ]),
  );

/** One table with a column for each index. */
const indexes = (definitions: Readonly<Record<string, readonly [type: string, index: string]>>): string => {
  const types = Object.fromEntries(Object.entries(definitions).map(([name, [type]]) => [name, type]));
  const created = Object.entries(definitions).map(
    ([name, [, text]]) => `CREATE ${text.replace('ON', `INDEX i_${name} ON @`).replaceAll('c)', `${name})`)}`,
  );
  return [columns(types), ...created].join('; ');
};

const keyed = (columns: string, key: string, more = ''): string =>
  `CREATE TABLE @ (${columns}, PRIMARY KEY (${key}))${more}`;

const view = (text: string): string =>
  `CREATE TABLE @ (a int, b int, c text, "D" int, PRIMARY KEY (a, b)); CREATE MATERIALIZED VIEW @_view AS ${text}`;

const ALL_KEYS = 'a IS NOT NULL AND b IS NOT NULL';

/** Each statement of a case ends with a semicolon or the case. */
const CASSANDRA_CASES: RemadeCases = {
  types: columns({
    type_int: 'int',
    type_tinyint: 'tinyint',
    type_smallint: 'smallint',
    type_bigint: 'bigint',
    type_varint: 'varint',
    type_float: 'float',
    type_double: 'double',
    type_decimal: 'decimal',
    type_text: 'text',
    type_varchar: 'varchar',
    type_ascii: 'ascii',
    type_inet: 'inet',
    type_boolean: 'boolean',
    type_blob: 'blob',
    type_date: 'date',
    type_time: 'time',
    type_timestamp: 'timestamp',
    type_duration: 'duration',
    type_uuid: 'uuid',
    type_timeuuid: 'timeuuid',
    type_list: 'list<int>',
    type_list_text: 'list<text>',
    type_list_tinyint: 'list<tinyint>',
    type_list_frozen: 'frozen<list<int>>',
    type_set: 'set<text>',
    type_set_frozen: 'frozen<set<uuid>>',
    type_map: 'map<text, int>',
    type_map_frozen: 'frozen<map<text, frozen<list<int>>>>',
    type_map_nested: 'map<text, frozen<map<int, text>>>',
    type_tuple: 'tuple<int, text>',
    type_tuple_list: 'list<frozen<tuple<int, text>>>',
    type_vector: 'vector<float, 3>',
    type_user: 'address',
    type_user_frozen: 'frozen<address>',
    type_user_nested: 'frozen<person>',
    type_user_map: 'map<text, frozen<person>>',
  }),
  ...options({
    options_time_to_live: `default_time_to_live = 86400 AND comment = 'it''s "one"' AND crc_check_chance = 0.5
      AND compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'HOURS', 'compaction_window_size': 6}
      AND compression = {'class': 'ZstdCompressor', 'compression_level': 3} AND speculative_retry = '50ms'`,
    options_leveled: `gc_grace_seconds = 3600 AND compaction = {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': 200}
      AND compression = {'class': 'SnappyCompressor', 'chunk_length_in_kb': 64} AND read_repair = 'NONE'
      AND speculative_retry = '95PERCENTILE' AND memtable = 'default'`,
    options_size_tiered: `compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 6}
      AND compression = {'enabled': 'false'} AND caching = {'keys': 'NONE', 'rows_per_partition': '10'}
      AND speculative_retry = 'NEVER' AND bloom_filter_fp_chance = 0.05`,
    options_unified: `compaction = {'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'T4'}
      AND additional_write_policy = '95p' AND memtable_flush_period_in_ms = 3600000 AND min_index_interval = 64
      AND max_index_interval = 4096 AND allow_auto_snapshot = false AND incremental_backups = false`,
  }),
  key_partition: keyed('a int, b text, c text', '(a, b)'),
  key_both: keyed('a int, b text, c timeuuid, d int', '(a, b), c, d'),
  key_desc: keyed('a int, b int, c text', 'a, b', ' WITH CLUSTERING ORDER BY (b DESC)'),
  key_mixed: keyed('a int, b int, c int', 'a, b, c', ' WITH CLUSTERING ORDER BY (b DESC, c ASC)'),
  key_other_order: keyed('c int, b int, a int', 'a, c'),
  key_quoted: keyed('"Id" int, "it s" text, "select" int', '"Id", "select"'),
  key_native: keyed('a ascii, b frozen<address>, c frozen<list<int>>', '(a, b), c'),
  static_text: keyed('a int, b int, c text, s text static, t list<int> static', 'a, b'),
  static_native: keyed('a int, b int, s map<text, frozen<address>> static', 'a, b'),
  counter_one: 'CREATE TABLE @ (id int PRIMARY KEY, c counter)',
  counter_static: keyed('a int, b int, c counter, d counter static', 'a, b'),
  indexes: indexes({
    index_plain: ['int', 'ON (c)'],
    index_list: ['list<int>', 'ON (c)'],
    index_set: ['set<text>', 'ON (values(c))'],
    index_map_keys: ['map<text, int>', 'ON (keys(c))'],
    index_map_values: ['map<text, int>', 'ON (values(c))'],
    index_map_entries: ['map<text, int>', 'ON (entries(c))'],
    index_full: ['frozen<list<int>>', 'ON (full(c))'],
    index_user: ['frozen<address>', 'ON (c)'],
    index_sai: ['int', "ON (c) USING 'sai'"],
    index_sai_class: ['int', "CUSTOM ON (c) USING 'StorageAttachedIndex'"],
    index_sai_options: ['text', "ON (c) USING 'sai' WITH OPTIONS = {'case_sensitive': 'false', 'normalize': 'true'}"],
    index_sai_vector: ['vector<float, 3>', "ON (c) USING 'sai' WITH OPTIONS = {'similarity_function': 'cosine'}"],
    index_sai_entries: ['map<text, int>', "ON (entries(c)) USING 'sai'"],
    index_sai_keys: ['map<text, int>', "ON (keys(c)) USING 'sai'"],
    index_sai_set: ['set<int>', "ON (values(c)) USING 'sai'"],
    index_legacy: ['int', "ON (c) USING 'legacy_local_table'"],
  }),
  index_two: `CREATE TABLE @ (id int PRIMARY KEY, c map<text, int>);
    CREATE INDEX @_keys ON @ (keys(c)) USING 'sai'; CREATE INDEX @_values ON @ (values(c)) USING 'sai'`,
  index_clustering: `${keyed('a int, b int, c text', 'a, b')}; CREATE INDEX @_b ON @ (b)`,
  index_partition: `${keyed('a int, b int, c text', '(a, b)')}; CREATE INDEX @_b ON @ (b) USING 'sai'`,
  index_static: `${keyed('a int, b int, s text static', 'a, b')}; CREATE INDEX @_s ON @ (s)`,
  index_quoted: 'CREATE TABLE @ (id int PRIMARY KEY, "Some" map<text, int>); CREATE INDEX @_q ON @ (keys("Some"))',
  view_all: view(`SELECT * FROM @ WHERE ${ALL_KEYS} PRIMARY KEY (b, a)`),
  view_some: view(`SELECT a, b, c FROM @ WHERE ${ALL_KEYS} AND c IS NOT NULL PRIMARY KEY (c, a, b)`),
  view_filtered: view(`SELECT a, b FROM @ WHERE ${ALL_KEYS} AND b > 3 PRIMARY KEY (b, a)`),
  view_quoted: view(`SELECT a, b, "D" FROM @ WHERE ${ALL_KEYS} AND "D" IS NOT NULL PRIMARY KEY (("D", a), b)`),
  view_options: view(
    `SELECT * FROM @ WHERE ${ALL_KEYS} PRIMARY KEY (b, a) WITH CLUSTERING ORDER BY (a DESC) AND comment = 'x' AND gc_grace_seconds = 60 AND compaction = {'class': 'LeveledCompactionStrategy'}`,
  ),
};

/** Where functions are enabled. */
const FUNCTIONS: readonly string[] = [
  "CREATE FUNCTION twice (x int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return 2 * x;'",
  'CREATE FUNCTION twice (x text) CALLED ON NULL INPUT RETURNS text LANGUAGE java AS $$ return x == null ? "it\'s" : x + x; $$',
  "CREATE FUNCTION zip_of (a address, n map<text, int>) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 1;'",
  "CREATE FUNCTION plus (a int, b int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a + b;'",
  'CREATE AGGREGATE total (int) SFUNC plus STYPE int FINALFUNC twice INITCOND 0',
];

/** A keyspace of one feature for each table, with rows. */
export async function grownKeyspace(points?: readonly string[]): Promise<FreshKeyspace> {
  const keyspace = await freshKeyspace(points);
  try {
    await grow(keyspace);
  } catch (error) {
    await keyspace.drop();
    throw error;
  }
  return keyspace;
}

async function grow(keyspace: FreshKeyspace): Promise<void> {
  for (const cql of SETUP) await keyspace.query(cql);
  for (const [name, text] of Object.entries(CASSANDRA_CASES)) {
    for (const cql of text.replaceAll('@', name).split(/;\s*/)) await keyspace.query(cql);
  }
  for (const id of [1, 2, 3]) {
    await keyspace.query(`INSERT INTO types (id, type_map) VALUES (${id}, {'a': ${id}})`);
    await keyspace.query(`INSERT INTO view_some (a, b, c) VALUES (1, ${id}, 'x')`);
    await keyspace.query(`UPDATE counter_one SET c = c + 1 WHERE id = ${id}`);
    await keyspace.query(`INSERT INTO static_native (a, b, s) VALUES (1, ${id}, {'a': {street: 'b', zip: 1}})`);
  }
  if (await hasFunctions(keyspace)) for (const cql of FUNCTIONS) await keyspace.query(cql);
}

async function hasFunctions({ query }: FreshKeyspace): Promise<boolean> {
  const [row] = await query("SELECT value FROM system_views.settings WHERE name = 'user_defined_functions_enabled'");
  return row?.value === 'true';
}

/** The facts of the catalog by table. What belongs to no table is by its own name. */
export async function cassandraFacts({ keyspace, query }: FreshKeyspace): Promise<Facts> {
  const facts = new Map<string, Set<string>>();
  for (const [table, owner] of [
    ['tables', 'table_name'],
    ['columns', 'table_name'],
    ['indexes', 'table_name'],
    ['views', 'view_name'],
    ['types', 'type_name'],
    ['functions', 'function_name'],
    ['aggregates', 'aggregate_name'],
  ] as const) {
    for (const row of await query(`SELECT * FROM system_schema.${table} WHERE keyspace_name = '${keyspace}'`)) {
      const name = String(row[owner]);
      if (name.startsWith('_svc_')) continue;
      const { keyspace_name: _, id: __, base_table_id: ___, column_name_bytes: ____, ...known } = row;
      // Two names of one class.
      const fact = JSON.stringify(sorted(known)).replace('"StorageAttachedIndex"', '"sai"');
      facts.set(name, (facts.get(name) ?? new Set()).add(`${table} ${fact}`));
    }
  }
  return facts;
}

const sorted = (row: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));
