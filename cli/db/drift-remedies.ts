import { type DeclarableSchema, declarableSchema } from '../../config/project/declarable-schema.ts';
import type { UnsupportedObject } from '../../core/dialect.ts';
import { shellQuote } from '../../core/errors.ts';
import { drift, withoutUnknownReferences } from '../../core/migration/drift.ts';
import { type FindRawMention, type RawMade, withoutRawMade } from '../../core/migration/raw-mentions.ts';
import type { Target } from '../../core/migration/target.ts';
import type { DatabaseObject } from '../../core/schema/database-object.ts';
import type { SchemaModel } from '../../core/schema/model.ts';

export const DECLARE_RAW_MADE =
  'svc db migrate create <name>    for a raw statement whose "makes" says what an earlier one made';

export function describeRawMade({ name, tag }: RawMade): string {
  return `"${name}" is left out: a raw statement of "${tag}" names it, and may have made or changed it.`;
}

export function describeUnsupported({ collection, field, what }: UnsupportedObject): string {
  if (collection === undefined) return `The database ${what}.`;
  return field === undefined ? `The table "${collection}" ${what}.` : `The field "${collection}.${field}" ${what}.`;
}

export function describeUsingOthers({ kind, name, uses }: DatabaseObject): string {
  return `The ${kind.replaceAll('_', ' ')} "${name}" is left out: it uses ${uses}, which migrations do not create.`;
}

export interface Drift {
  readonly expected: SchemaModel;
  /** The compared part of the catalog. */
  readonly found: SchemaModel;
  readonly unsupported: readonly UnsupportedObject[];
  /** Indexes and constraints that exist in another form than their migrations have given them. */
  readonly changed: readonly UnsupportedObject[];
  readonly findRaw: FindRawMention;
}

/** Commands that remove the differences, by their cause. What `svc db schema pull` would leave out has another remedy. */
export async function driftRemedies({ connection, dialect }: Target, drifted: Drift): Promise<string[]> {
  const { expected, unsupported, changed, findRaw } = drifted;
  const { found, rawMade } = withoutRawMade(drifted.found, await connection.normalize(expected), findRaw);
  const differs = async (part: SchemaModel, leftOut: readonly string[] = []): Promise<boolean> => {
    const known = new Map([...expected].filter(([name]) => part.has(name)));
    const referenced = new Map([...found, ...expected].filter(([name]) => !leftOut.includes(name)));
    return (await drift(connection, known, withoutUnknownReferences(part, referenced))).length > 0;
  };
  const pulled = await declarableSchema({
    dialect,
    found,
    files: expected,
    unsupported,
    isUnchanged: async (collection) => !(await differs(new Map([[collection.name, collection]]))),
  });
  const isAdoptable = (name: string): boolean => !pulled.leftOut.includes(name) && !pulled.kept.includes(name);
  const missing = [...expected.keys()].some((name) => !found.has(name) && !pulled.kept.includes(name));
  const adoptable =
    missing || (await differs(new Map([...found].filter(([name]) => isAdoptable(name))), pulled.leftOut));
  return [
    ...(adoptable ? [ADOPT] : []),
    ...(rawMade.length > 0 ? [DECLARE_RAW_MADE] : []),
    ...undeclarableRemedies(pulled, changed),
  ];
}

export const ADOPT = 'Revert the change manually, or adopt it: svc db schema pull, then svc db migrate baseline';

function undeclarableRemedies(
  { leftOut, kept }: DeclarableSchema,
  changed: readonly UnsupportedObject[],
): readonly string[] {
  const names = [...new Set([...kept, ...changed.map(({ collection, name }) => `${collection}.${name}`)])];
  const ignored = leftOut.map((name) => `--ignore ${shellQuote(name)}`).join(' ');
  return [
    ...(names.length > 0 ? [`Revert ${names.join(', ')} manually: svc cannot create the present form`] : []),
    ...(leftOut.length > 0 ? [`svc db schema check --strict ${ignored}    ignores what svc cannot create`] : []),
  ];
}
