import type { Document, Filter } from 'mongodb';
import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import { fromExtended, type Server } from './open.ts';
import type { Place } from './place.ts';
import type { Rule } from './rule.ts';
import type { Check } from './step.ts';

/** Ids that a refusal names. */
const SHOWN = 5;

/** Throws `data_violates`, with how many documents stand in the way and which some of them are. */
export async function checkDocuments(place: Place, collection: string, checks: readonly Check[]): Promise<void> {
  if (!(await mayFind(place, collection, checks))) return;
  const documents = place.server.db.collection(collection);
  for (const check of checks) {
    const most = 'lacking' in check ? (check.atMost ?? 0) : 0;
    const found = documentsOf(place, check);
    const shown = await documents
      .aggregate([...found, { $limit: Math.max(SHOWN, most + 1) }], { allowDiskUse: true })
      .toArray();
    if (shown.length <= most) continue;
    const sum = { $group: { _id: null, n: { $sum: '$n' } } };
    const [counted] = await documents.aggregate([...found, sum], { allowDiskUse: true }).toArray();
    const ids = shown.slice(0, SHOWN).map(({ _id }) => idText(place.server, _id));
    throw refused(collection, check.why, Number(counted?.n ?? shown.length), ids);
  }
}

/** One look for all of them. Whatever a check finds is found here too, and perhaps more. */
export async function mayFind(place: Place, collection: string, checks: readonly Check[]): Promise<boolean> {
  const some = checks.map((check) => filterOf(place, check));
  if (some.length === 0) return false;
  const found = await place.server.db.collection(collection).findOne({ $or: some }, { projection: { _id: 1 } });
  return found !== null;
}

const EACH = { $project: { n: { $literal: 1 } } };

function filterOf(place: Place, check: Check): Filter<Document> {
  if ('duplicates' in check) return check.of?.held ? violating(place, check.of.field, check.of.change.rule) : {};
  if ('lacking' in check) return { [check.lacking]: null };
  if ('both' in check) return { $and: check.both.map((name) => ({ [name]: { $exists: true } })) };
  if ('breaks' in check) return { $nor: [fromExtended(place.server, check.breaks)] };
  if ('gives' in check) return { [check.field]: null };
  return violating(place, check.field, check.change.rule);
}

/** The ids of documents that a check does not want to see, each with the number of those it stands for. */
function documentsOf(place: Place, check: Check): Document[] {
  const { server } = place;
  if ('duplicates' in check) return duplicatesOf(server, check);
  const found = { $match: filterOf(place, check) };
  if ('gives' in check) {
    const { field, rule, required } = check;
    const misfits = [violating(place, field, rule), ...(required ? [{ [field]: null }] : [])];
    return [found, { $set: { [field]: expressionOf(server, check.gives) } }, { $match: { $or: misfits } }, EACH];
  }
  if (!('change' in check) || check.change.expression === undefined) return [found, EACH];
  return [found, { $set: { [check.field]: expressionOf(server, check.change.expression) } }, found, EACH];
}

function duplicatesOf(server: Server, check: Extract<Check, { readonly duplicates: unknown }>): Document[] {
  const { duplicates, lists = [] } = check;
  const { key, partial } = duplicates;
  const { field, change: { expression } = {} } = check.of ?? {};
  const of = Object.fromEntries(key.map(([name], index) => [`k${index}`, { $ifNull: [`$${name}`, null] }]));
  return [
    // Documents without a value get one each, or are refused.
    ...(field === undefined ? [] : [{ $match: { [field]: { $ne: null } } }]),
    ...(field === undefined || expression === undefined
      ? []
      : [{ $set: { [field]: expressionOf(server, expression) } }]),
    ...(partial === undefined ? [] : [{ $match: fromExtended(server, partial) }]),
    ...lists.flatMap((name) => [{ $set: { [name]: elementsOf(`$${name}`) } }, { $unwind: `$${name}` }]),
    { $group: { _id: of, all: { $sum: 1 }, last: { $last: '$_id' } } },
    { $match: { all: { $gt: 1 } } },
    { $project: { _id: '$last', n: { $subtract: ['$all', 1] } } },
    // A document may share several elements.
    ...(lists.length > 0 ? [{ $group: { _id: '$_id', n: { $max: '$n' } } }] : []),
  ];
}

/** What `$unwind` makes a document of each of; an array that is empty is a value too. */
function elementsOf(value: string): Document {
  const elements = { $cond: [{ $eq: [value, []] }, [[]], { $setUnion: [value, []] }] };
  return { $cond: [{ $isArray: [value] }, elements, [{ $ifNull: [value, null] }]] };
}

/** A constant is an expression too. */
const expressionOf = (server: Server, expression: Json): unknown => fromExtended(server, { at: expression }).at;

/** Values that a rule does not let through; by their types alone on a server that knows no schemas. */
export function violating({ server, settings }: Place, field: string, rule: Rule): Filter<Document> {
  if (!settings.validators) return { [field]: { $exists: true, $not: { $type: rule.bsonType } } } as Filter<Document>;
  return { $nor: [{ $jsonSchema: { properties: { [field]: fromExtended(server, rule) } } }] };
}

function refused(collection: string, why: string, count: number, ids: readonly string[]): SvcError {
  const some = ids.length < count ? ', for example' : '';
  return new SvcError('data_violates', `Documents in "${collection}" do not allow the change.`, {
    why: `${count} ${why}${count > 0 ? `${some}: _id ${ids.join(', ')}` : ''}.`,
    next: ['Correct or delete those documents first, for example with db.update.'],
    details: { count, ids },
  });
}

const idText = ({ bson }: Server, id: unknown): string =>
  typeof id === 'string' || typeof id === 'number' ? JSON.stringify(id) : bson.EJSON.stringify(id, { relaxed: true });
