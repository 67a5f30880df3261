import { SvcError } from '../../../core/errors.ts';
import type { Collection } from '../../../core/schema/model.ts';
import { ON_DEMAND } from './shape.ts';

const BILLING = [ON_DEMAND, 'PROVISIONED'];
const VIEWS = ['KEYS_ONLY', 'NEW_IMAGE', 'OLD_IMAGE', 'NEW_AND_OLD_IMAGES'];
const PROJECTIONS = ['ALL', 'KEYS_ONLY'];
const TTL_TYPES = ['integer', 'bigint', 'timestamp'];
const MOST_GLOBALS = 20;
const MOST_LOCALS = 5;

/** What AWS refuses, and what a server on this machine takes without a word. Throws `schema_invalid`. */
export function checkOptions({ name: table, fields, options }: Collection): void {
  const { dynamoOptions: given = {} } = options;
  const refuse = (option: string, why: string, next: string) =>
    new SvcError('schema_invalid', `The dynamoOptions of the table "${table}" cannot be used.`, {
      why,
      next: [next],
      details: { path: ['dynamoOptions', option] },
    });
  const among = (option: string, value: string | undefined, known: readonly string[]) => {
    if (value === undefined || known.includes(value)) return;
    throw refuse(option, `"${value}" is not known as ${option}.`, `Use one of: ${known.join(', ')}.`);
  };
  const { billingMode, readCapacityUnits, writeCapacityUnits, streamEnabled, streamViewType, ttlAttribute } = given;
  const { globalSecondaryIndexes: globals = [], localSecondaryIndexes: locals = [] } = given;
  among('billingMode', billingMode, BILLING);
  among('streamViewType', streamViewType, VIEWS);
  if (streamViewType !== undefined && !streamEnabled) {
    throw refuse('streamViewType', 'There is a streamViewType and no stream.', 'Add streamEnabled: true.');
  }
  for (const units of [readCapacityUnits, writeCapacityUnits]) {
    if (billingMode === 'PROVISIONED' ? !Number.isInteger(units) || (units ?? 0) < 1 : units !== undefined) {
      throw refuse(
        'billingMode',
        'PROVISIONED goes with readCapacityUnits and writeCapacityUnits, whole numbers from 1 on, and nothing else does.',
        `Write both, or billingMode: '${ON_DEMAND}'.`,
      );
    }
  }
  const taken = new Set<string>();
  for (const index of [...globals, ...locals]) {
    among('projection', index.projection, PROJECTIONS);
    if (taken.has(index.name))
      throw refuse('globalSecondaryIndexes', `Two indexes are called "${index.name}".`, 'Rename one.');
    taken.add(index.name);
  }
  if (globals.length > MOST_GLOBALS || locals.length > MOST_LOCALS) {
    throw refuse(
      globals.length > MOST_GLOBALS ? 'globalSecondaryIndexes' : 'localSecondaryIndexes',
      `A table has at most ${MOST_GLOBALS} global and ${MOST_LOCALS} local indexes.`,
      'Leave out those that no query uses.',
    );
  }
  const sorted =
    given.sortKey !== undefined ||
    (!given.partitionKey && [...fields.values()].filter((one) => one.primaryKey).length > 1);
  if (locals.length > 0 && !sorted) {
    throw refuse(
      'localSecondaryIndexes',
      'Local indexes go with a table that has a sort key.',
      'Add a sortKey, or use global indexes.',
    );
  }
  if (ttlAttribute === undefined) return;
  const ttl = fields.get(ttlAttribute);
  if (!ttl)
    throw refuse('ttlAttribute', `The table has no field "${ttlAttribute}".`, `Add the field "${ttlAttribute}".`);
  if (TTL_TYPES.includes(ttl.type)) return;
  throw refuse(
    'ttlAttribute',
    `The time to live is a number of whole seconds since 1970; "${ttlAttribute}" is of type ${ttl.type}.`,
    `Give the field one of the types ${TTL_TYPES.join(', ')}.`,
  );
}
