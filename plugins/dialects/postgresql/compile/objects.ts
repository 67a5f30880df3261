import type { ObjectRules, Statement } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { type DatabaseObject, objectKey } from '../../../../core/schema/database-object.ts';
import type { ReplaceObject } from '../../../../core/schema/operation.ts';
import { assertCreates, type Creation, type ObjectName, orReplace } from '../../sql/objects.ts';
import type { RawSql } from '../../sql/statement.ts';
import { assertAccepted } from './assert-accepted.ts';
import { enumLabels, renamedLabels } from './enum-labels.ts';
import { quoteLiteral } from './literal.ts';
import { pathIn, qualified, quoteIdentifier, relationOf } from './names.ts';
import { statement } from './object-statement.ts';
import { doBlock } from './plpgsql-guards.ts';
import { assertUsable } from './raw.ts';
import { isMadeAgain, replaceType, swapType } from './replace-type.ts';
import { routineHead, signature, wordsOf } from './routine-signature.ts';
import { GRANT_OPTION, ROLE, setPrivileges } from './set-privileges.ts';
import { partsOf } from './statement-list.ts';
import type { PostgresqlStep } from './step.ts';
import { assertTableObject, compileTableObject, isStatementList, isTableObject, TABLE_KINDS } from './table-objects.ts';

interface Kind {
  /** What the text begins with, as words; a word in brackets may be left out. */
  readonly head: string;
  /** The object belongs to a table: its name is `table.name`. */
  readonly ofTable?: true;
  /** `OR REPLACE` gives it another definition. */
  readonly replaceable?: true;
}

const KINDS: Readonly<Record<string, Kind>> = {
  schema: { head: 'create schema [if not exists]' },
  extension: { head: 'create extension [if not exists]' },
  collation: { head: 'create collation [if not exists]' },
  type: { head: 'create type' },
  domain: { head: 'create domain' },
  sequence: { head: 'create [unlogged] sequence [if not exists]' },
  function: { head: 'create [or replace] function', replaceable: true },
  procedure: { head: 'create [or replace] procedure', replaceable: true },
  operator: { head: 'create operator' },
  aggregate: { head: 'create [or replace] aggregate', replaceable: true },
  cast: { head: 'create cast' },
  text_search_dictionary: { head: 'create text search dictionary' },
  text_search_configuration: { head: 'create text search configuration' },
  settings: { head: '' },
  partition: { head: 'create [unlogged] table [if not exists]' },
  inherited_table: { head: 'create [unlogged] table [if not exists]' },
  view: { head: 'create [or replace] [recursive] view', replaceable: true },
  materialized_view: { head: 'create materialized view [if not exists]' },
  statistics: { head: 'create statistics [if not exists]' },
  exclusion: { head: 'alter table [only]', ofTable: true },
  rule: { head: 'create [or replace] rule', ofTable: true, replaceable: true },
  trigger: { head: 'create [or replace] [constraint] trigger', ofTable: true },
  row_security: { head: 'alter table [only]' },
  policy: { head: 'create policy', ofTable: true },
  grants: { head: '' },
};

const IN_THE_WAY: ReadonlySet<string> = new Set(['view', 'materialized_view', 'rule', 'trigger', 'policy']);
/** They have no name that others could use. */
const UNNAMED: ReadonlySet<string> = new Set(['extension', 'operator', 'cast', 'row_security', 'settings', 'grants']);

export const objects: ObjectRules<PostgresqlStep> = {
  kinds: Object.keys(KINDS),
  beforeTables: new Set([
    'schema',
    'extension',
    'collation',
    'type',
    'domain',
    'sequence',
    'function',
    'procedure',
    'operator',
    'aggregate',
    'cast',
    'text_search_dictionary',
    'text_search_configuration',
  ]),
  independent: new Set(['schema', 'extension']),
  tables: TABLE_KINDS,
  rowTypes: true,
  // What is renamed is renamed in them too.
  isInTheWay(kind, change) {
    if (change === 'rename') return false;
    // A grant of a field is taken back under the name that it has.
    if (kind === 'grants') return change === 'drop';
    // A comment goes with the index.
    return kind === 'settings' || (change !== 'index' && IN_THE_WAY.has(kind));
  },
  referredName: ({ kind, name }) => (KINDS[kind]?.ofTable || UNNAMED.has(kind) ? undefined : bareName(name)),
  boundText: ({ kind, definition }) => (isRoutine(kind) ? routineHead(definition) : definition),
  needs(operation) {
    const path =
      operation.type === 'createCollection'
        ? operation.name
        : operation.type === 'renameCollection'
          ? operation.to
          : '';
    const { schema } = relationOf(path);
    // Every database has the public one, where a name may have a dot.
    if (schema === undefined || schema === 'public') return undefined;
    const definition = `CREATE SCHEMA IF NOT EXISTS ${quoteIdentifier(schema)}`;
    return { kind: 'schema', name: schema, definition };
  },
  renamedValues(before, after) {
    const [was, is] = [enumLabels(before.definition), enumLabels(after.definition)];
    if (before.kind !== 'type' || !was || !is) return [];
    return [...renamedLabels(was, is).values()].map((label) => label.slice(1, -1).replaceAll("''", "'"));
  },
  movesFields: ({ kind, definition }, after) =>
    kind === 'domain' || (kind === 'type' && isMadeAgain(definition, after.definition)),
  isReplacedInPlace(before, after) {
    const { kind } = after;
    if (isCallable(kind)) return signature(before.definition) === signature(after.definition);
    return !/view$|^text_search|^collation$/.test(kind);
  },
  assertAccepted,
  compile(operation) {
    if (operation.type !== 'dropObject') assertCreatesObject(operation, operation.definition);
    if (isTableObject(operation.kind)) return compileTableObject(operation);
    switch (operation.type) {
      case 'createObject':
        return [statement(operation.definition, withGrants(operation, createText(operation)))];
      case 'dropObject':
        return [dropStatement(operation)];
      case 'replaceObject':
        return replace(operation);
    }
  },
};

/** The table or view that an object belongs to. */
export function tableOf({ kind, name }: ObjectName): string | undefined {
  return KINDS[kind]?.ofTable ? tablePart(name) : undefined;
}

/** The table may have a schema. What belongs to it is quoted if it has a dot in its name. */
const tablePart = (name: string): string =>
  /^(.*?)\."(?:[^"]|"")*"$/s.exec(name)?.[1] ?? name.slice(0, Math.max(0, name.lastIndexOf('.')));

/** The name without the arguments that distinguish it from others. */
export const bareName = (name: string): string => /^(.+?)\(.*\)$/s.exec(name)?.[1] ?? name;

function memberName({ kind, name }: ObjectName): string {
  const table = tableOf({ kind, name });
  return table === undefined ? bareName(name) : unquoted(name.slice(table.length + 1));
}

const unquoted = (name: string): string => (/^"(?:[^"]|"")*"$/.test(name) ? pathIn(name) : name);

function assertCreatesObject(object: ObjectName, definition: string): void {
  assertUsable(definition);
  if (isTableObject(object.kind)) assertTableObject(object, definition);
  if (isStatementList(object.kind)) return;
  const words = wordsOf(definition);
  const inWords = object.kind === 'cast' ? castIn : object.kind === 'exclusion' ? exclusionIn : creationIn;
  assertCreates(object, inWords(object, object.kind === 'operator' ? withOperator(words) : words));
}

/** Each character of an operator is a word of its own otherwise. */
function withOperator(words: readonly string[]): readonly string[] {
  const end = words.indexOf('(');
  return [...words.slice(0, 2), words.slice(2, end).join(''), ...words.slice(end)];
}

function creationIn(object: ObjectName, words: readonly string[]): Creation {
  const { head = '', ofTable } = KINDS[object.kind] ?? {};
  const name = memberName(object);
  return {
    words,
    start: headLength(head, words),
    unquote: pathIn,
    example: `${head.replace(/ \[[^\]]*\]/g, '').toUpperCase()} ${ofTable ? quoteIdentifier(name) : pathText(object.kind, name)} …`,
    expected: {
      name,
      ...(ofTable && { table: tablePart(object.name) }),
      ...(object.kind === 'rule' && { tableWord: 'to' }),
    },
  };
}

/** Its name is what it converts, from one type to another. */
function castIn({ name }: ObjectName, words: readonly string[]): Creation {
  return {
    words: [words.slice(3, words.indexOf(')')).join(' ')],
    start: words[0] === 'create' && words[1] === 'cast' ? 0 : undefined,
    unquote: (word) => word,
    example: `CREATE CAST (${name}) …`,
    expected: { name: wordsOf(name).join(' ') },
  };
}

/** ALTER TABLE names the table before the constraint. */
function exclusionIn(object: ObjectName, words: readonly string[]): Creation {
  const [table, name] = [tablePart(object.name), memberName(object)];
  const at = words.indexOf('constraint');
  const altered = words[words[2] === 'only' ? 3 : 2] ?? '';
  return {
    words: [words[at + 1] ?? '', 'on', altered],
    start: words[1] === 'table' && words[at - 1] === 'add' && words[at + 2] === 'exclude' ? 0 : undefined,
    unquote: pathIn,
    example: `ALTER TABLE ${qualified(table, '')} ADD CONSTRAINT ${quoteIdentifier(name)} EXCLUDE …`,
    expected: { name, table },
  };
}

/** How many of the words are the beginning; undefined if they are another. */
function headLength(head: string, words: readonly string[]): number | undefined {
  let at = 0;
  for (const [, optional, word = ''] of head.matchAll(/\[([^\]]*)\]|(\w+)/g)) {
    const expected = (optional ?? word).split(' ');
    const matches = expected.every((one, index) => words[at + index] === one);
    if (matches) at += expected.length;
    else if (optional === undefined) return undefined;
  }
  return at;
}

/** An operator cannot be quoted. */
function pathText(kind: string, path: string): string {
  const { schema, name } = relationOf(path);
  if (kind !== 'operator') return qualified(path, '');
  return schema === undefined ? name : `${quoteIdentifier(schema)}.${name}`;
}

function dropText({ kind, name }: ObjectName): string {
  const table = tableOf({ kind, name });
  const own = memberName({ kind, name });
  const member = table === undefined ? pathText(kind, own) : quoteIdentifier(own);
  if (kind === 'row_security')
    return `ALTER TABLE ${member} DISABLE ROW LEVEL SECURITY;\n\nALTER TABLE ${member} NO FORCE ROW LEVEL SECURITY`;
  if (kind === 'cast') return `DROP CAST (${name})`;
  if (kind === 'exclusion') return `ALTER TABLE ${qualified(table ?? '', '')} DROP CONSTRAINT ${member}`;
  const signature = name.slice(bareName(name).length);
  return `DROP ${dropWord(kind)} ${member}${signature}${table === undefined ? '' : ` ON ${qualified(table, '')}`}`;
}

/** DROP AGGREGATE wants the arguments of one that is alone, too. */
const dropWord = (kind: string): string => (kind === 'aggregate' ? 'ROUTINE' : kind.replaceAll('_', ' ').toUpperCase());

function dropStatement(object: ObjectName): Statement<RawSql> {
  const text = dropText(object);
  const kept = hasGrants(object) ? `${keepGrants(object)};\n${text}` : text;
  // A sequence has a value, which its definition does not.
  return statement(text, kept, object.kind === 'sequence');
}

function replace(operation: ReplaceObject): readonly Statement<PostgresqlStep>[] {
  const { kind, name, definition, was } = operation;
  assertCreatesObject(operation, was);
  if (kind === 'type') return replaceType(operation);
  if (kind === 'domain') return [swapType(operation)];
  if (kind === 'sequence')
    return [
      statement(definition.replace(/^\s*create\s+(?:unlogged\s+)?sequence(\s+if\s+not\s+exists)?/i, 'ALTER SEQUENCE')),
    ];
  if (kind === 'schema') return [replaceSchema(operation)];
  if (kind === 'extension') throw cannotReplace(operation, 'PostgreSQL changes an extension by statements of its own.');
  const isAnother = isCallable(kind) && signature(definition) !== signature(was);
  if (!KINDS[kind]?.replaceable || isAnother) {
    const text = `${dropText({ kind, name })};\n\n${definition}`;
    return [statement(text, hasGrants(operation) ? `${keepGrants(operation)};\n${withGrants(operation, text)}` : text)];
  }
  const text = orReplace(definition);
  if (kind === 'view') return [statement(text, replaceView(operation, text))];
  return [statement(text)];
}

const cannotReplace = (object: ObjectName, why: string): SvcError =>
  new SvcError('migration_invalid', `"${objectKey(object)}" cannot be replaced.`, {
    why,
    next: ['Write a raw migration for the change, and restore the file.'],
  });

/** Of a schema, the text can change only what follows its creation: its comment. */
function replaceSchema(operation: ReplaceObject): Statement<RawSql> {
  const [, ...after] = partsOf(operation.definition);
  if (after.some(({ words }) => words[0] !== 'comment'))
    throw cannotReplace(operation, 'Only the comment of a schema can be changed.');
  const comments = after.map(({ text }) => text);
  return statement(comments.join(';\n\n') || `COMMENT ON SCHEMA ${quoteIdentifier(operation.name)} IS NULL`);
}

/** A function that a check or a default uses comes before the tables, which its body may read; and it may read other schemas. */
function createText({ kind, definition }: Pick<DatabaseObject, 'kind' | 'definition'>): string {
  if (!isRoutine(kind)) return definition;
  const create = `EXECUTE ${quoteLiteral(definition)}`;
  const checks = (value: string): string => `PERFORM set_config('check_function_bodies', ${value}, true)`;
  return doBlock(
    `DECLARE was text := current_setting('check_function_bodies'); BEGIN ${create}; EXCEPTION WHEN undefined_table OR undefined_object OR undefined_function OR invalid_schema_name OR cannot_coerce OR datatype_mismatch THEN ${checks("'off'")}; ${create}; ${checks('was')}; END`,
  );
}

const isRoutine = (kind: string): boolean => kind === 'function' || kind === 'procedure';
const isCallable = (kind: string): boolean => isRoutine(kind) || kind === 'aggregate';

/** Other columns are refused by OR REPLACE: then the view is dropped and created, unless something depends on it. */
function replaceView(object: ReplaceObject, text: string): string {
  const view = quoteLiteral(qualified(object.name, ''));
  const recreate = `${keepGrants(object)};\n${dropText(object)};\n${withGrants(object, object.definition)}`;
  return doBlock(
    `BEGIN EXECUTE ${quoteLiteral(text)}; EXCEPTION WHEN invalid_table_definition THEN IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(${view})) OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = to_regclass(${view}) AND rulename <> '_RETURN') THEN RAISE; END IF; EXECUTE ${quoteLiteral(recreate)}; END`,
  );
}

const GRANTED: ReadonlySet<string> = new Set(['view', 'materialized_view', 'function', 'procedure', 'aggregate']);
const hasGrants = ({ kind }: Pick<DatabaseObject, 'kind'>): boolean => GRANTED.has(kind);

/** What a drop would lose, for the same object created again in the same transaction. */
const setting = (object: ObjectName): string =>
  quoteLiteral(`svc.grants_${Buffer.from(objectKey(object)).toString('hex')}`);

function catalogEntry({ kind, name }: ObjectName) {
  const quoted = `${qualified(bareName(name), '')}${name.slice(bareName(name).length)}`;
  return isCallable(kind)
    ? {
        select: `proacl::text AS acl, proowner AS owner, NULL::json AS fields FROM pg_proc WHERE oid = ${name.endsWith(')') ? `to_regprocedure(${quoteLiteral(quoted)})` : `to_regproc(${quoteLiteral(quoted)})`}`,
        type: 'f',
        quoted,
        grantable: `ROUTINE ${quoted}`,
        owned: `${dropWord(kind)} ${quoted}`,
      }
    : {
        select: `relacl::text AS acl, relowner AS owner, (SELECT json_agg(json_build_object('field', attname, 'acl', attacl::text)) FROM pg_attribute WHERE attrelid = c.oid AND attacl IS NOT NULL) AS fields FROM pg_class c WHERE oid = to_regclass(${quoteLiteral(quoted)})`,
        type: 'r',
        quoted,
        grantable: `TABLE ${quoted}`,
        owned: `${dropWord(kind)} ${quoted}`,
      };
}

const keepGrants = (object: ObjectName): string =>
  `SELECT set_config(${setting(object)}, json_build_object('acl', acl, 'owner', owner, 'fields', fields)::text, true) FROM (SELECT ${catalogEntry(object).select}) kept`;

/** The text, followed by what restores the grants and the owner that the object had before it was dropped. */
function withGrants(object: ObjectName, text: string): string {
  if (!hasGrants(object)) return text;
  const { select, type, grantable, owned, quoted } = catalogEntry(object);
  const present = { acl: 'present.acl::aclitem[]', type, owner: 'present.owner' };
  const kept = { ...present, acl: "(kept ->> 'acl')::aclitem[]" };
  const restore = `DECLARE kept json := NULLIF(current_setting(${setting(object)}, true), '')::json; given record; present record; BEGIN IF kept IS NULL THEN RETURN; END IF; PERFORM set_config(${setting(object)}, '', true); SELECT * INTO present FROM (SELECT ${select}) made; ${setPrivileges(grantable, present, kept)}; FOR given IN SELECT f ->> 'field' AS field, a.* FROM json_array_elements(CASE json_typeof(kept -> 'fields') WHEN 'array' THEN kept -> 'fields' ELSE '[]' END) f CROSS JOIN LATERAL aclexplode((f ->> 'acl')::aclitem[]) a LOOP IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass(${quoteLiteral(quoted)}) AND attname = given.field) THEN EXECUTE format('GRANT %s (%I) ON %s TO %s%s', given.privilege_type, given.field, ${quoteLiteral(grantable)}, ${ROLE}, ${GRANT_OPTION}); END IF; END LOOP; IF pg_get_userbyid((kept ->> 'owner')::oid) <> current_user THEN EXECUTE format('ALTER %s OWNER TO %I', ${quoteLiteral(owned)}, pg_get_userbyid((kept ->> 'owner')::oid)); END IF; END`;
  return `${text}\n;${doBlock(restore)}`;
}
