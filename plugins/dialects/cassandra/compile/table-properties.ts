import { SvcError } from '../../../../core/errors.ts';
import { isPlainObject, type Json } from '../../../../core/json.ts';
import type { CassandraOptions } from '../../../../core/schema/options.ts';

type Value = string | number | boolean | Readonly<Record<string, string>>;

/** The properties of a table as the catalog has them, by their names in CQL. */
export type TableProperties = Readonly<Record<string, Value | null>>;

const LEVELED = 'LeveledCompactionStrategy';

/** What Cassandra takes if a table says nothing. Null for a property that the server or its configuration decides. */
const DEFAULTS: TableProperties = {
  additional_write_policy: '99p',
  allow_auto_snapshot: true,
  bloom_filter_fp_chance: 0.01,
  caching: { keys: 'ALL', rows_per_partition: 'NONE' },
  cdc: false,
  comment: '',
  compaction: { class: 'SizeTieredCompactionStrategy', max_threshold: '32', min_threshold: '4' },
  compression: { chunk_length_in_kb: '16', class: 'LZ4Compressor' },
  crc_check_chance: 1,
  default_time_to_live: 0,
  gc_grace_seconds: 864_000,
  incremental_backups: true,
  max_index_interval: 2048,
  memtable: null,
  memtable_flush_period_in_ms: 0,
  min_index_interval: 128,
  read_repair: 'BLOCKING',
  speculative_retry: '99p',
};

/** Properties with an option of their own. */
const OWN_OPTIONS: Readonly<Record<string, string>> = { default_time_to_live: 'defaultTTL', compaction: 'compaction' };

/** The names in `cassandraOptions.properties`. */
const PROPERTY_NAMES: readonly string[] = Object.keys(DEFAULTS).filter((name) => !(name in OWN_OPTIONS));

/** The values that differ from what Cassandra takes itself. */
export function chosenProperties(found: TableProperties): Readonly<Record<string, Value>> {
  const defaults = { ...DEFAULTS, ...(classOf(found.compaction) === LEVELED && { bloom_filter_fp_chance: 0.1 }) };
  return Object.fromEntries(
    Object.entries(defaults).flatMap(([name, byDefault]) => {
      const value = found[name] ?? null;
      return value === null || isSame(value, byDefault, name) ? [] : [[name, shortened(value)]];
    }),
  );
}

/** Whether the table has the values that the options name. */
export function hasProperties(found: TableProperties, options: CassandraOptions): boolean {
  const { defaultTTL = 0, compaction = {}, properties = {} } = options;
  return (
    defaultTTL === Number(found.default_time_to_live ?? 0) &&
    Object.entries({ ...properties, ...(Object.keys(compaction).length > 0 && { compaction }) }).every(
      ([name, value]) => contains(found[name] ?? DEFAULTS[name] ?? null, value, name),
    )
  );
}

/** The properties in the WITH of a statement. Throws `schema_invalid`. */
export function propertyTexts({ defaultTTL, compaction, properties = {} }: CassandraOptions, table: string): string[] {
  assertTimeToLive(defaultTTL, table);
  if (compaction !== undefined && (typeof compaction.class !== 'string' || !/^[\w.]+$/.test(compaction.class))) {
    throw invalidOption(
      table,
      'compaction',
      'Its class must be the name of a strategy, such as "LeveledCompactionStrategy".',
    );
  }
  for (const name of Object.keys(properties)) {
    if (PROPERTY_NAMES.includes(name)) continue;
    const own = OWN_OPTIONS[name];
    throw invalidOption(
      table,
      `properties.${name}`,
      own === undefined ? `It is not one of ${PROPERTY_NAMES.join(', ')}.` : `It is the option ${own}.`,
    );
  }
  return [
    ...(defaultTTL === undefined ? [] : [`default_time_to_live = ${defaultTTL}`]),
    ...(compaction === undefined ? [] : [`compaction = ${valueText(compaction, table, 'compaction')}`]),
    ...Object.entries(properties).map(([name, value]) => `${name} = ${valueText(value, table, `properties.${name}`)}`),
  ];
}

const MAX_TTL = 630_720_000;

function assertTimeToLive(seconds: number | undefined, table: string): void {
  if (seconds === undefined || (Number.isSafeInteger(seconds) && seconds >= 0 && seconds <= MAX_TTL)) return;
  throw invalidOption(table, 'defaultTTL', `It is ${seconds}, which is not a number of seconds from 0 to ${MAX_TTL}.`);
}

function valueText(value: Json | undefined, table: string, option: string): string {
  if (typeof value === 'string') return quoteLiteral(value);
  if (typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) return String(value);
  if (!isPlainObject(value))
    throw invalidOption(table, option, 'It is not a text, a number, true, false or an object.');
  const entries = Object.entries(value).map(([name, one]) => {
    if (typeof one === 'object') throw invalidOption(table, option, `"${name}" is not a plain value.`);
    return `${quoteLiteral(name)}: ${quoteLiteral(String(one))}`;
  });
  return `{${entries.join(', ')}}`;
}

export const quoteLiteral = (value: string): string => `'${value.replaceAll("'", "''")}'`;

function invalidOption(table: string, option: string, why: string): SvcError {
  return new SvcError('schema_invalid', `The option ${option} of the table "${table}" cannot be used.`, {
    why,
    details: { path: ['options', 'cassandraOptions', ...option.split('.')] },
  });
}

/** The value as options name it: classes of Cassandra without their packages. */
const shortened = (value: Value): Value =>
  typeof value === 'object' && value.class !== undefined ? { ...value, class: shortClass(value.class) } : value;

const shortClass = (name: string): string => name.replace(/^org\.apache\.cassandra\.(?:\w+\.)*/, '');

const classOf = (value: Value | null | undefined): string | undefined =>
  typeof value === 'object' && value !== null && value.class !== undefined ? shortClass(value.class) : undefined;

function isSame(a: Value | null, b: Value | null, name: string): boolean {
  return contains(a, b, name) && contains(b, a, name);
}

/** Whether the value of the catalog is the wanted one; of a map, only the wanted entries are compared. */
function contains(found: Value | null, wanted: Json | undefined, property: string): boolean {
  if (!isPlainObject(wanted)) return spelled(found, property) === spelled(wanted ?? null, property);
  if (found === null || typeof found !== 'object') return false;
  return Object.entries(wanted).every(([name, value]) => {
    const [one, other] = [String(found[name] ?? ''), String(value)];
    return name === 'class' ? shortClass(one) === shortClass(other) : one.toLowerCase() === other.toLowerCase();
  });
}

/** `99PERCENTILE` is kept as `99p`, and keywords in capitals. */
function spelled(value: Json | Value, property: string): string {
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return property === 'comment' ? text : text.toLowerCase().replace(/^([\d.]+)percentile$/, '$1p');
}
