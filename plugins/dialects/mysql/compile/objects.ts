import type { ObjectPlace, ObjectRules, Statement } from '../../../../core/dialect.ts';
import { type DatabaseObject, objectKey } from '../../../../core/schema/database-object.ts';
import type { ObjectOperation } from '../../../../core/schema/operation.ts';
import { assertCreates, type ObjectName, orReplace, tablePart, wordsWithoutComments } from '../../sql/objects.ts';
import type { RawSql } from '../../sql/statement.ts';
import type { Traits } from '../variant.ts';
import { quoteIdentifier, quoteLiteral } from './literal.ts';
import { compilePartitions } from './partitions.ts';
import { assertUsable } from './raw.ts';
import { alterSequence } from './sequence.ts';
import type { MysqlStep } from './step.ts';
import { tokenize } from './tokens.ts';
import { triggerPlace } from './trigger-place.ts';

/** The kinds, and where the catalog has them: the view of information_schema, and its columns. */
const KINDS: Readonly<Record<string, { readonly from: string; readonly schema: string; readonly name: string }>> = {
  function: { from: "routines WHERE routine_type = 'FUNCTION' AND", schema: 'routine_schema', name: 'routine_name' },
  procedure: { from: "routines WHERE routine_type = 'PROCEDURE' AND", schema: 'routine_schema', name: 'routine_name' },
  view: { from: 'views WHERE', schema: 'table_schema', name: 'table_name' },
  trigger: { from: 'triggers WHERE', schema: 'trigger_schema', name: 'trigger_name' },
  event: { from: 'events WHERE', schema: 'event_schema', name: 'event_name' },
  sequence: { from: "tables WHERE table_type = 'SEQUENCE' AND", schema: 'table_schema', name: 'table_name' },
};

export const objectRules = (traits: Traits): ObjectRules<MysqlStep> => ({
  kinds: [
    ...(traits.hasSequences ? ['sequence'] : []),
    ...['function', 'procedure', 'partitions', 'view', 'trigger', 'event'],
  ],
  beforeTables: new Set(['sequence', 'function', 'procedure']),
  // The server would keep it, unusable.
  isInTheWay: (kind, change) =>
    (change === 'drop' || change === 'rename') && (kind === 'partitions' || kind === 'view' || kind === 'trigger'),
  referredName: ({ kind, name }) =>
    kind === 'trigger' || kind === 'event' || kind === 'partitions' ? undefined : name,
  // A routine and an event look up names when they run.
  boundText: ({ kind, definition }) =>
    kind === 'view' || kind === 'trigger' || kind === 'partitions' ? definition : '',
  isReplacedInPlace: () => true,
  place: placeOf,
  compile: (operation) => compileObject(traits, operation),
});

function placeOf({ kind, name, definition }: DatabaseObject): ObjectPlace | undefined {
  const place = kind === 'trigger' ? triggerPlace(definition) : undefined;
  if (!place) return undefined;
  const { table, event, other } = place;
  return {
    group: `${table} ${event}`,
    ...(other !== undefined && { nextTo: objectKey({ kind, name: `${tablePart(name)}.${other}` }) }),
  };
}

function compileObject(traits: Traits, operation: ObjectOperation): readonly Statement<MysqlStep>[] {
  if (operation.kind === 'partitions') {
    if (operation.type !== 'dropObject') assertUsable(operation.definition);
    return compilePartitions(operation);
  }
  if (operation.type === 'dropObject') return [dropStatement(operation)];
  const { definition, kind } = operation;
  assertCreatesObject(operation, definition);
  if (operation.type === 'createObject') return [statement(definition, { check: existsQuery(operation) })];
  if (kind === 'sequence') return [statement(alterSequence(operation), { idempotent: true })];
  // One statement where the server has it: in between, rows would be written without a trigger.
  if (kind === 'view' || traits.replacesRoutines) return [statement(orReplace(definition), { idempotent: true })];
  return [{ ...dropStatement(operation), idempotent: true }, statement(definition, { check: existsQuery(operation) })];
}

function statement(
  text: string,
  facts: Partial<Pick<Statement, 'check' | 'idempotent' | 'destructive'>>,
  more: Pick<RawSql, 'drops'> = {},
): Statement<RawSql> {
  return {
    text,
    run: { kind: 'raw', sql: text, inSchema: true, ...more },
    transactional: false,
    destructive: false,
    ...facts,
  };
}

function dropStatement(object: ObjectName): Statement<RawSql> {
  const text = `DROP ${object.kind.toUpperCase()} IF EXISTS ${quoteIdentifier(memberName(object))}`;
  return statement(
    text,
    {
      check: `SELECT 1 FROM DUAL WHERE NOT EXISTS (${existsQuery(object)})`,
      // Its value is lost, which its definition does not have.
      destructive: object.kind === 'sequence',
    },
    { drops: `${object.kind}/${memberName(object)}` },
  );
}

function existsQuery(object: ObjectName): string {
  const { from = '', schema = '', name = '' } = KINDS[object.kind] ?? {};
  return `SELECT 1 FROM information_schema.${from} ${schema} = DATABASE() AND CAST(${name} AS BINARY) = CAST(${quoteLiteral(memberName(object))} AS BINARY)`;
}

const memberName = ({ kind, name }: ObjectName): string =>
  kind === 'trigger' ? name.slice(tablePart(name).length + 1) : name;

/** Throws `migration_invalid` if the text does not create the object, or is more than one statement. */
function assertCreatesObject(object: ObjectName, definition: string): void {
  const statements = assertUsable(definition);
  const words = wordsOf(definition);
  const at = words.indexOf(object.kind);
  const isCreation = statements.length === 1 && words[0] === 'create' && at > 0 && at < MAX_HEAD;
  const hasCondition = words[at + 1] === 'if';
  assertCreates(object, {
    words,
    start: isCreation ? at + (hasCondition ? 4 : 1) : undefined,
    unquote: unquoted,
    example: `CREATE ${object.kind.toUpperCase()} ${quoteIdentifier(memberName(object))} …`,
    expected: {
      name: memberName(object).toLowerCase(),
      ...(object.kind === 'trigger' && { table: tablePart(object.name).toLowerCase() }),
    },
  });
}

/** Words before the name: ALGORITHM, DEFINER and SQL SECURITY. */
const MAX_HEAD = 16;

const wordsOf = (definition: string): readonly string[] => wordsWithoutComments(tokenize(definition));

/** In lower case, as the words of a text are. */
const unquoted = (word: string): string =>
  (word.startsWith('`') ? word.slice(1, -1).replaceAll('``', '`') : word).toLowerCase();

/** The words of a text in one spelling: without quotes, DEFINER and the case of the letters outside of literals. */
export const canonicalWords = (definition: string): string =>
  wordsOf(definition.replace(DEFINER, ''))
    .map((word) => (word.startsWith('`') ? unquoted(word) : word))
    .join(' ');

/** The user that creates an object is its definer. */
export const DEFINER =
  /(?<=^\s*create\b[^(]*?)\bdefiner\s*=\s*(?:`(?:[^`]|``)*`|'[^']*'|\w+)(?:\s*@\s*(?:`(?:[^`]|``)*`|'[^']*'|[\w%.]+))?\s*/i;

/** The object that a text creates, under another name. */
export function withName(object: ObjectName, definition: string, name: string): string {
  const { kind } = object;
  const head = new RegExp(
    `^(\\s*create\\b.*?\\b${kind}\\s+(?:if\\s+not\\s+exists\\s+)?)(?:\`(?:[^\`]|\`\`)*\`|[\\w$]+)`,
    'is',
  );
  return definition.replace(head, (_, before: string) => before + quoteIdentifier(name));
}
