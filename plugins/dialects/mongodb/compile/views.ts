import type { ObjectRules } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { isPlainObject, type Json } from '../../../../core/json.ts';
import { type DatabaseObject, objectKey } from '../../../../core/schema/database-object.ts';
import type { ObjectOperation } from '../../../../core/schema/operation.ts';
import { canonicalNumbers, plainNumbers } from './indexes.ts';
import { type MongoStatement, type MongoStep, stepStatement } from './step.ts';
import { parseObject, type Validator } from './validator.ts';

/** A view is the command that creates it, as JSON. */
export const views: ObjectRules<MongoStep> = {
  kinds: ['view'],
  file: { extension: '.json', end: '' },
  beforeTables: new Set(),
  // A view is computed when it is read.
  isInTheWay: () => false,
  referredName: ({ name }) => name,
  boundText: () => '',
  isReplacedInPlace: () => true,
  compile,
};

function compile(operation: ObjectOperation): readonly MongoStatement[] {
  const { name } = operation;
  const drop = stepStatement({ kind: 'dropView', collection: name });
  if (operation.type === 'dropObject') return [drop];
  const command = parseView(operation, operation.definition);
  const create = stepStatement({ kind: 'createView', collection: name, command });
  if (operation.type === 'createObject') return [create];
  // Only the collation of a view cannot be changed.
  const before = parseObject(operation.was);
  if (orderedText(before?.collation) !== orderedText(command.collation)) return [drop, create];
  const { viewOn = null, pipeline = [] } = command;
  return [stepStatement({ kind: 'changeView', collection: name, viewOn, pipeline })];
}

const ALLOWED: ReadonlySet<string> = new Set(['create', 'viewOn', 'pipeline', 'collation', 'comment']);

/** Throws `migration_invalid` if the text is not the command that creates the view. */
function parseView(object: Pick<DatabaseObject, 'kind' | 'name'>, definition: string): Validator {
  const command = parseObject(definition);
  const other = Object.keys(command ?? {}).find((key) => !ALLOWED.has(key));
  const { viewOn, pipeline = [] } = command ?? {};
  const isView = command?.create === object.name && typeof viewOn === 'string' && Array.isArray(pipeline);
  if (isView && other === undefined) return command;
  throw new SvcError('migration_invalid', `The definition of "${objectKey(object)}" does not create it.`, {
    why:
      command === undefined
        ? 'It is not a JSON object.'
        : other === undefined
          ? `It needs "create": "${object.name}", "viewOn" with a name and "pipeline" with a list.`
          : `It has "${other}", which no view has.`,
    next: [`Begin it with: { "create": "${object.name}", "viewOn": …, "pipeline": […] }`],
  });
}

/** The text of a view that the server lists. `options` is extended JSON. */
export function viewText(name: string, options: Validator): string {
  const { viewOn, pipeline = [], collation } = options;
  const command = { create: name, viewOn, pipeline, ...(collation !== undefined && { collation }) };
  return JSON.stringify(plainNumbers(command as Json), null, 2);
}

/** Whether two texts create the same view. The order of keys matters in a stage. */
export function isSameView(a: string, b: string): boolean {
  const [one, other] = [parseObject(a), parseObject(b)];
  return one !== undefined && other !== undefined && partsOf(one) === partsOf(other);
}

const partsOf = ({ viewOn = null, pipeline = [], collation = null }: Validator): string =>
  orderedText([viewOn, pipeline, isPlainObject(collation) ? sortedCollation(collation as Validator) : null]);

/** The server adds what is not written. */
function sortedCollation({ version: _, ...collation }: Validator): Json {
  return Object.fromEntries(Object.entries(collation).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const orderedText = (value: Json | undefined): string => JSON.stringify(canonicalNumbers(value ?? null));
