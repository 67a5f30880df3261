import type { MigrationOperation } from '../schema/operation.ts';

/*
 * What an operation may do to data beyond what its type says. An environment with `approval` asks a person about it, whatever the
 * migration says of itself.
 */

/** What to say of it, for people; undefined if there is nothing. `all` are the operations of its migration. */
export function hiddenEffect(operation: MigrationOperation, all: readonly MigrationOperation[]): string | undefined {
  if (isOpaque(operation)) return `${operation.type}: svc knows its text only`;
  if (deletesExpired(operation, all)) return 'the server then deletes what has expired';
  const expressions = expressionsIn(operation);
  const unread = expressions.flatMap((text) => unreadIn(text) ?? [])[0];
  if (unread !== undefined) return `it has ${unread}, which svc does not read`;
  const called = unknownFunctions(expressions);
  return called.length === 0 ? undefined : `it calls ${called.join(', ')}: svc does not know what that does`;
}

/** Only its text says what it does. */
export const isOpaque = ({ type }: MigrationOperation): boolean =>
  type === 'raw' || type === 'createObject' || type === 'replaceObject';

/** Whether the engine itself will delete what a table has, unless the same migration has made the table. */
function deletesExpired(operation: MigrationOperation, all: readonly MigrationOperation[]): boolean {
  if (operation.type !== 'createIndex' || operation.mongoOptions?.expireAfterSeconds === undefined) return false;
  const named = all.slice(0, all.indexOf(operation)).filter((before) => nameGivenBy(before) === operation.collection);
  return named.at(-1)?.type !== 'createCollection';
}

function nameGivenBy(operation: MigrationOperation): string | undefined {
  if (operation.type === 'createCollection') return operation.name;
  return operation.type === 'renameCollection' ? operation.to : undefined;
}

/*
 * An expression or a native text runs for each row, and a function of the database's own that it calls may do anything. What is
 * recognized is what all engines read alike: texts and names in quotes. A comment, an escaped text and one in dollars, in which
 * a call can be hidden, are not read at all.
 */

const NAME = String.raw`(?:"(?:[^"]|"")*"|[a-z_\u{80}-\u{10ffff}][\w$\u{80}-\u{10ffff}]*)`;
const TOKEN = new RegExp(
  String.raw`(?<unread>/\*|--|e'|\$(?:[a-z_\u{80}-\u{10ffff}][\w\u{80}-\u{10ffff}]*)?\$)|(?<text>'(?:[^']|'')*(?:'|$))|${NAME}`,
  'giu',
);
const CALL = new RegExp(String.raw`(${NAME}(?:\s*\.\s*${NAME})*)\s*\(`, 'giu');

/** The sign of what is not read. */
function unreadIn(text: string): string | undefined {
  for (const { groups } of text.matchAll(TOKEN))
    if (groups?.unread !== undefined) return UNREAD[groups.unread.charAt(0)];
  return undefined;
}

const UNREAD: Readonly<Record<string, string>> = {
  '/': 'a comment',
  '-': 'a comment',
  e: "a text with escapes (E'…')",
  E: "a text with escapes (E'…')",
  $: 'a text in dollars ($$…$$)',
};

function unknownFunctions(expressions: readonly string[]): readonly string[] {
  const called = expressions.flatMap((text) => [
    ...text.replace(TOKEN, (token) => (token.startsWith("'") ? "''" : token)).matchAll(CALL),
  ]);
  const names = called.map(([, name = '']) => name.replace(/\s/g, '').replace(/^"?pg_catalog"?\./i, ''));
  return [...new Set(names.filter((name) => !KNOWN.has(name.toLowerCase()) && !/^st_\w+$/i.test(name)))];
}

const EXPRESSIONS: readonly string[] = ['$expression', 'expression', 'native'];

function expressionsIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    typeof member === 'string' ? (EXPRESSIONS.includes(key) ? [member] : []) : expressionsIn(member),
  );
}

/** Words and types that a parenthesis may follow, and functions of engines that only compute a value. */
const KNOWN: ReadonlySet<string> = new Set(
  `all and any array as between by case cast check collate default distinct else end exists filter from generated group identity
  ilike in include interval is key like limit list not null nulls on or order over partition primary range references row some
  stored then unique using values virtual when where with within
  bigint binary bit blob bpchar brin btree char character date decimal double enum fulltext geography geometry gin gist halfvec hash
  int mediumint numeric point set smallint spatial spgist text time timestamp timestamptz timetz tinyint varbinary varbit varchar
  varying vector year
  abs acos age array_append array_cat array_length array_lower array_position array_remove array_to_string array_upper ascii asin
  atan bit_length btrim cardinality ceil ceiling char_length character_length chr clock_timestamp coalesce concat concat_ws
  convert_from convert_to cos current_setting currval date_bin date_part date_trunc daterange datetime decode div encode exp
  extract family floor format gcd gen_random_uuid get_byte greatest hashtext hex host ifnull iif initcap instr int4range int8range
  isempty isfinite json json_array_length json_build_array json_build_object json_extract json_typeof json_valid jsonb
  jsonb_array_length jsonb_build_array jsonb_build_object jsonb_exists jsonb_extract_path jsonb_extract_path_text jsonb_path_exists
  jsonb_set jsonb_strip_nulls jsonb_typeof julianday justify_days lcm least left length ln localtime localtimestamp log lower
  lower_inc lpad ltrim make_date make_interval make_time make_timestamp make_timestamptz masklen md5 mod network nextval now
  nullif num_nonnulls num_nulls numrange octet_length overlay pg_column_size pg_typeof pi plainto_tsquery position power printf
  quote_ident quote_literal random randomblob regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array
  regexp_substr repeat replace reverse right round row_to_json rpad rtrim setweight sha224 sha256 sha384 sha512 sign similarity
  sin split_part sqrt starts_with statement_timestamp strftime string_to_array strpos substr substring tan timezone to_char
  to_date to_hex to_json to_jsonb to_number to_timestamp to_tsquery to_tsvector transaction_timestamp translate trim trunc tsrange
  tstzrange typeof unaccent unixepoch unnest upper upper_inc uuid uuid_generate_v1 uuid_generate_v4 uuidv4 uuidv7
  websearch_to_tsquery width_bucket
  bin bin_to_uuid conv crc32 curdate current_date current_time current_timestamp curtime date_add date_format date_sub day dayofweek
  dayofyear elt field from_unixtime hour if inet6_aton inet_aton inet_ntoa isnull json_array json_contains json_keys json_length
  json_object json_type json_unquote json_value locate mid minute month oct quarter second sha sha1 sha2 soundex space sysdate
  timestampdiff to_days truncate unhex unix_timestamp utc_date utc_timestamp uuid_short uuid_to_bin week weekday yearweek`.split(
    /\s+/,
  ),
);
