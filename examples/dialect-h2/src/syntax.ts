import {
  engineErrors,
  quoteLiteral,
  type SqlServerSyntax,
  STANDARD_TYPES,
  UNSUPPORTED_BY_SQL_SERVER,
  type ValidationRules,
} from '@svc/sdk/dialect';

/** The longest text and bytes of H2. */
const LONGEST = 1_000_000_000;

const TYPES: SqlServerSyntax['types'] = {
  ...STANDARD_TYPES,
  text: `CHARACTER VARYING(${LONGEST})`,
  blob: `BINARY VARYING(${LONGEST})`,
  json: 'JSON',
  uuid: 'UUID',
  enum: 'ENUM',
};

export const SYNTAX: SqlServerSyntax = {
  types: TYPES,
  typeSynonyms: { DECFLOAT: 'decimal', TIME: 'time', TIMESTAMP: 'datetime', 'TIMESTAMP WITH TIME ZONE': 'timestamp' },
  typeText({ type, length = 255, precision, enumValues = [] }) {
    if (type === 'enum') return `ENUM(${enumValues.map((value) => quoteLiteral(value)).join(', ')})`;
    if (type === 'decimal' && precision === undefined) return 'DECFLOAT';
    return type === 'string' || type === 'binary' ? `${TYPES[type]}(${length})` : undefined;
  },
  quoteLiteral(value, { type }) {
    if (type === 'json') return `JSON ${quoteLiteral(JSON.stringify(value))}`;
    return type === 'decimal' || typeof value === 'boolean' ? String(value) : undefined;
  },
  arrayLiteral: (elements) => `ARRAY [${elements.join(', ')}]`,
  now: {
    date: 'CURRENT_DATE',
    time: 'LOCALTIME(3)',
    datetime: 'LOCALTIMESTAMP(3)',
    timestamp: 'CURRENT_TIMESTAMP(3)',
  },
  currentTimestamp: 'CURRENT_TIMESTAMP(3)',
  uuid: 'RANDOM_UUID()',
  nativeEnum: true,
  alterColumn: ({ definition, name, from, to }) => [
    // Without NULL, a column stays NOT NULL.
    `ALTER COLUMN ${definition}${to.required ? '' : ' NULL'}`,
    ...(to.autoGenerate && !from.autoGenerate && to.type !== 'uuid' && to.type !== 'string'
      ? [`ALTER COLUMN ${name} RESTART WITH 1`]
      : []),
  ],
  renameColumn: (from, to) => `ALTER COLUMN ${from} RENAME TO ${to}`,
  scratchTable: 'CREATE LOCAL TEMPORARY TABLE',
  restrictIsNoAction: true,
  // Java compares UTF-16.
  textOrder: (text) => `STRINGTOUTF8(${text})`,
};

export const RULES: ValidationRules = {
  name: 'h2',
  names: { max: 63, unit: 'bytes' },
  unsupported: {
    ...UNSUPPORTED_BY_SQL_SERVER,
    dropLastField: { why: 'H2 refuses to drop the only column.', next: 'Drop the table.' },
  },
};

export const ERRORS = engineErrors({
  engine: 'H2',
  messages: {
    collection_exists: /\[42101-/,
    collection_unknown: /\[4210[24]-/,
    field_exists: /\[42121-/,
    field_unknown: /\[42122-/,
    index_exists: /\[42111-/,
    constraint_exists: /\[90045-/,
    data_violates: /\[2[23]\w{3}-/,
    table_locked: /\[50200-/,
    authentication_failed: /\[28000-/,
    permission_denied: /\[9009[56]-/,
    connection_lost: /Connection terminated|not queryable|ECONNRESET|EPIPE/,
    connection_failed: /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|timeout expired/,
  },
  duplicate: /\[23505-/,
});
