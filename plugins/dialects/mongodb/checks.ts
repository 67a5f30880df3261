import type { Document, Filter } from 'mongodb';
import { SvcError } from '../../../core/errors.ts';
import { fromExtended, type Server } from './open.ts';
import type { Place } from './place.ts';
import type { Rule } from './rule.ts';
import type { Check } from './step.ts';

/** Ids that a refusal names. */
const SHOWN = 5;

/** Throws `data_violates`, with how many documents stand in the way and which some of them are. */
export async function checkDocuments(place: Place, collection: string, checks: readonly Check[]): Promise<void> {
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

const EACH = { $project: { n: { $literal: 1 } } };

/** The ids of documents that a check does not want to see, each with the number of those it stands for. */
function documentsOf(place: Place, check: Check): Document[] {
  const { server } = place;
  if ('lacking' in check) return [{ $match: { [check.lacking]: null } }, EACH];
  if ('both' in check) {
    const [from, to] = check.both;
    return [{ $match: { [from]: { $exists: true }, [to]: { $exists: true } } }, EACH];
  }
  if ('breaks' in check) return [{ $match: { $nor: [fromExtended(server, check.breaks)] } }, EACH];
  if ('duplicates' in check) {
    const { key, partial } = check.duplicates;
    const of = Object.fromEntries(key.map(([name], index) => [`k${index}`, { $ifNull: [`$${name}`, null] }]));
    return [
      ...(partial === undefined ? [] : [{ $match: fromExtended(server, partial) }]),
      { $group: { _id: of, all: { $sum: 1 }, last: { $last: '$_id' } } },
      { $match: { all: { $gt: 1 } } },
      { $project: { _id: '$last', n: { $subtract: ['$all', 1] } } },
    ];
  }
  const { field, change } = check;
  const broken = { $match: violating(place, field, change.rule) };
  if (change.expression === undefined) return [broken, EACH];
  return [broken, { $set: { [field]: fromExtended(server, change.expression) } }, broken, EACH];
}

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
