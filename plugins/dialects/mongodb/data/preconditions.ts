import type { Document, Filter } from 'mongodb';
import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import type { Precondition, RewrittenField } from '../compile/step.ts';
import type { FieldRule } from '../compile/validator.ts';
import { codeOf } from '../connection/errors.ts';
import { fromExtendedJson, type MongoServer } from '../connection/server.ts';
import type { RunContext } from '../run/run-context.ts';

/** Number of ids in an error. */
const SHOWN_IDS = 5;

/** A field that is renamed before the preconditions are checked. */
export interface FieldMove {
  readonly from: string;
  readonly to: string;
}

/** Throws `data_violates` with the number of violating documents and some of their ids. Reads documents as after `moves`. */
export async function assertPreconditions(
  context: RunContext,
  collection: string,
  checks: readonly Precondition[],
  moves: readonly FieldMove[] = [],
): Promise<void> {
  // A query without stages can use an index, but cannot rename a field.
  if (moves.length === 0 && !(await mayViolate(context, collection, checks))) return;
  // A $set after $unset reads the removed value on DocumentDB.
  const moved = moves.map(({ from, to }) => ({ $set: { [to]: `$${from}`, [from]: '$$REMOVE' } }));
  const documents = context.server.db.collection(collection);
  for (const check of checks) {
    const allowed = 'missingField' in check ? (check.atMost ?? 0) : 0;
    const pipeline = [...moved, ...violationPipeline(context, check)];
    const shown = await documents
      .aggregate([...pipeline, { $limit: Math.max(SHOWN_IDS, allowed + 1) }], { allowDiskUse: true })
      .toArray();
    if (shown.length <= allowed) continue;
    const sum = { $group: { _id: null, n: { $sum: '$n' } } };
    const [counted] = await documents.aggregate([...pipeline, sum], { allowDiskUse: true }).toArray();
    const ids = shown.slice(0, SHOWN_IDS).map(({ _id }) => idText(context.server, _id));
    throw violationError(collection, check.why, Number(counted?.n ?? shown.length), ids);
  }
}

/** One query for all preconditions: false if none is violated. May be true without a violation. */
export async function mayViolate(
  context: RunContext,
  collection: string,
  checks: readonly Precondition[],
): Promise<boolean> {
  const filters = checks.map((check) => preconditionFilter(context, check));
  if (filters.length === 0) return false;
  const found = await context.server.db.collection(collection).findOne({ $or: filters }, { projection: { _id: 1 } });
  return found !== null;
}

/** Each document counts as one violation. */
const COUNT_ONE = { $project: { n: { $literal: 1 } } };

function preconditionFilter(context: RunContext, check: Precondition): Filter<Document> {
  if ('duplicates' in check)
    return check.converted?.indexExists
      ? ruleViolationFilter(context, check.converted.field, check.converted.change.rule)
      : {};
  if ('missingField' in check) return { [check.missingField]: null };
  if ('both' in check) return { $and: check.both.map((name) => ({ [name]: { $exists: true } })) };
  if ('mustMatch' in check) return { $nor: [fromExtendedJson(context.server, check.mustMatch)] };
  if ('computed' in check) return { [check.field]: null };
  return ruleViolationFilter(context, check.field, check.change.rule);
}

/** Returns ids of violating documents, each with its number `n` of violations. */
function violationPipeline(context: RunContext, check: Precondition): Document[] {
  const { server } = context;
  if ('duplicates' in check) return duplicatesPipeline(server, check);
  const found = { $match: preconditionFilter(context, check) };
  if ('computed' in check) {
    const { field, rule, required } = check;
    const violations = [ruleViolationFilter(context, field, rule), ...(required ? [{ [field]: null }] : [])];
    return [
      found,
      { $set: { [field]: expressionOf(server, check.computed) } },
      { $match: { $or: violations } },
      COUNT_ONE,
    ];
  }
  if (!('change' in check) || check.change.expression === undefined) return [found, COUNT_ONE];
  return [found, { $set: { [check.field]: expressionOf(server, check.change.expression) } }, found, COUNT_ONE];
}

function duplicatesPipeline(
  server: MongoServer,
  check: Extract<Precondition, { readonly duplicates: unknown }>,
): Document[] {
  const { duplicates, arrayFields = [] } = check;
  const { key, partial } = duplicates;
  const { field, change: { expression } = {} } = check.converted ?? {};
  const keyValues = Object.fromEntries(key.map(([name], index) => [`k${index}`, { $ifNull: [`$${name}`, null] }]));
  return [
    // Each document without a value gets its own, or violates another precondition.
    ...(field === undefined ? [] : [{ $match: { [field]: { $ne: null } } }]),
    ...(field === undefined || expression === undefined
      ? []
      : [{ $set: { [field]: expressionOf(server, expression) } }]),
    ...(partial === undefined ? [] : [{ $match: fromExtendedJson(server, partial) }]),
    ...arrayFields.flatMap((name) => [{ $set: { [name]: elementsOf(`$${name}`) } }, { $unwind: `$${name}` }]),
    { $group: { _id: keyValues, all: { $sum: 1 }, last: { $last: '$_id' } } },
    { $match: { all: { $gt: 1 } } },
    { $project: { _id: '$last', n: { $subtract: ['$all', 1] } } },
    // A document may have several duplicate elements.
    ...(arrayFields.length > 0 ? [{ $group: { _id: '$_id', n: { $max: '$n' } } }] : []),
  ];
}

/** The elements to unwind: for $unwind, an empty array and a missing value count as one element. */
function elementsOf(value: string): Document {
  const elements = { $cond: [{ $eq: [value, []] }, [[]], { $setUnion: [value, []] }] };
  return { $cond: [{ $isArray: [value] }, elements, [{ $ifNull: [value, null] }]] };
}

const expressionOf = (server: MongoServer, expression: Json): unknown =>
  fromExtendedJson(server, { at: expression }).at;

/** Documents whose value violates a rule; only the type is checked on a server without validators. */
export function ruleViolationFilter(
  { server, settings }: RunContext,
  field: string,
  rule: FieldRule,
): Filter<Document> {
  if (!settings.validators) return { [field]: { $exists: true, $not: { $type: rule.bsonType } } } as Filter<Document>;
  return { $nor: [{ $jsonSchema: { properties: { [field]: fromExtendedJson(server, rule) } } }] };
}

function violationError(collection: string, why: string, count: number, ids: readonly string[]): SvcError {
  const suffix = ids.length < count ? ', for example' : '';
  return new SvcError('data_violates', `Documents in "${collection}" do not allow the change.`, {
    why: `${count} ${why}${count > 0 ? `${suffix}: _id ${ids.join(', ')}` : ''}.`,
    next: ['Correct or delete those documents first, for example with db.update.'],
    details: { count, ids },
  });
}

const idText = ({ bson }: MongoServer, id: unknown): string =>
  typeof id === 'string' || typeof id === 'number' ? JSON.stringify(id) : bson.EJSON.stringify(id, { relaxed: true });

/** Throws `not_supported` before a change of the shard key, which a router rejects halfway through. */
export async function assertShardKeyUntouched(
  context: RunContext,
  collection: string,
  { field, rule }: RewrittenField,
): Promise<void> {
  const { server } = context;
  const key = await shardKeyOf(server, collection);
  if (!key.some((path) => path === field || path.startsWith(`${field}.`))) return;
  const violation = rule && server.db.collection(collection).findOne(ruleViolationFilter(context, field, rule));
  if (rule && !(await violation)) return;
  throw new SvcError('not_supported', `The values of "${collection}.${field}" cannot be changed.`, {
    why: `The collection is sharded by ${key.map((path) => `"${path}"`).join(', ')}.`,
    next: [
      'Shard the collection by another key first: raw reshardCollection.',
      'Or copy its documents into another collection.',
    ],
  });
}

async function shardKeyOf({ client, db }: MongoServer, collection: string): Promise<readonly string[]> {
  const { sharded } = await db.command({ collStats: collection });
  if (sharded !== true) return [];
  const _id = `${db.databaseName}.${collection}`;
  try {
    const entry = await client.db('config').collection<{ _id: string; key: object }>('collections').findOne({ _id });
    return Object.keys(entry?.key ?? {});
  } catch (error) {
    if (codeOf(error) !== 13) throw error;
    throw new SvcError(
      'permission_denied',
      `The database user is not permitted to read the shard key of "${collection}".`,
      {
        why: 'A field of the shard key cannot be changed, and the key is stored in config.collections.',
        next: ['Grant the user the role read on the database config.'],
        cause: error,
      },
    );
  }
}
