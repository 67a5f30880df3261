import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../../../../core/errors.ts';
import { canonicalJson } from '../../../../core/json.ts';
import { defineField } from '../../../../core/schema/define.ts';
import { TEMPORAL_TYPES } from '../../../../core/schema/literal.ts';
import type { Field } from '../../../../core/schema/model.ts';
import type { NamedFieldDefinition } from '../../../../core/schema/operation.ts';
import type { TableShape } from '../catalog/table-shape.ts';
import type { FieldMove } from '../compile/step.ts';
import type { DynamoClient } from '../connection/client.ts';
import { type RunContext, reportProgress, requireTable } from '../run/run-context.ts';
import { encodeNow, encodeValue, generateUuid, type Item, isNull, itemToJson } from './attribute.ts';
import type { ItemUpdate } from './batch-update.ts';
import { convertValue } from './convert-value.ts';
import { moveProgressId, progressRemoval, resumeScan, ScanProgress } from './resumable-scan.ts';
import { itemKey, nameInFilter, type ScanJob, scanTable, startOfTable } from './scan.ts';

/** Applies a move to every item, resuming where an interrupted attempt stopped. */
export async function moveField(context: RunContext, table: string, move: FieldMove): Promise<void> {
  const { client, state, epoch } = context;
  const { name, items, shape, limits } = await requireTable(context, table);
  const job = createHash('sha256').update(canonicalJson(move)).digest('hex');
  const progress = new ScanProgress(
    state,
    moveProgressId(table),
    job,
    (item) => state.writeFenced(epoch, [item]),
    () => client.clock.now(),
  );
  const { attributes, filter, updateFor } = planMove(context, shape, move);
  await resumeScan({
    items,
    progress,
    client,
    table: name,
    shape,
    attributes,
    ...(filter && { filter }),
    limits,
    assertLease: context.assertLease,
    repeatable: true,
    updateFor,
    onProgress: (scanned) => reportProgress(context, table, scanned, items),
  });
}

/** Throws `data_violates` if the move cannot be applied to every item. Deletes the saved position of an earlier attempt. */
export async function assertMovable(context: RunContext, table: string, move: FieldMove): Promise<void> {
  const { state, epoch } = context;
  await assertItems(context, table, await requireTable(context, table), moveCheck(move));
  await state.writeFenced(epoch, [progressRemoval(state, moveProgressId(table))]);
}

/** Throws `data_violates`, with a count and some keys, if items do not pass the check. */
export async function assertItems(
  context: RunContext,
  table: string,
  { name, items, shape, limits }: Awaited<ReturnType<typeof requireTable>>,
  check: ItemCheck,
): Promise<void> {
  const { client } = context;
  const found = { count: 0, keys: [] as string[], why: '' };
  const position = startOfTable(items);
  await scanTable({
    client,
    table: name,
    shape,
    attributes: check.attributes,
    ...(check.filter && { filter: check.filter }),
    position,
    limits,
    assertLease: context.assertLease,
    updateFor(item) {
      const why = check.problem(item);
      if (why === undefined) return undefined;
      found.count += 1;
      found.why ||= why;
      if (found.keys.length < 3) found.keys.push(JSON.stringify(itemToJson(itemKey(shape, item))));
      return undefined;
    },
    onPage: async (now) => reportProgress(context, table, now.scanned, items, true),
  });
  if (found.count > 0) {
    throw new SvcError('data_violates', `Items of "${table}" do not allow the change.`, {
      why: `${found.count} ${found.count === 1 ? 'item fails' : 'items fail'}: ${found.why}. For example ${found.keys.join(', ')}.`,
      state: 'Nothing was changed.',
      next: ['Correct or delete those items, then run the command again.'],
      details: { count: found.count },
    });
  }
}

type ConvertMove = Extract<FieldMove, { kind: 'convert' }>;
type MovePlan = Pick<ScanJob, 'attributes' | 'filter' | 'updateFor'>;

/** The attributes and items that a move reads, and its update of each item. */
function planMove({ client }: Pick<RunContext, 'client'>, shape: TableShape, move: FieldMove): MovePlan {
  switch (move.kind) {
    case 'fill': {
      const field = fieldFrom(move.field);
      const name = nameInFilter(field.name);
      return {
        attributes: [field.name],
        // NULL counts as a value unless the field is required.
        filter: field.required
          ? {
              text: `(attribute_not_exists(${name}) OR attribute_type(${name}, :null))`,
              values: { ':null': { S: 'NULL' } },
            }
          : { text: `attribute_not_exists(${name})` },
        updateFor: (item) => {
          const current = item[field.name];
          if (current && !(field.required && isNull(current))) return undefined;
          return {
            key: itemKey(shape, item),
            set: { [field.name]: fillValue(client, field) },
            expected: { [field.name]: current },
          };
        },
      };
    }
    case 'remove':
      return {
        attributes: [move.field],
        filter: { text: `attribute_exists(${nameInFilter(move.field)})` },
        updateFor: (item) => {
          const value = item[move.field];
          // The condition keeps a field of the same name that was added after the read.
          return value && { key: itemKey(shape, item), remove: [move.field], expected: { [move.field]: value } };
        },
      };
    case 'rename': {
      const { from, to } = move;
      return {
        attributes: [from, to],
        filter: { text: `attribute_exists(${nameInFilter(from)})` },
        updateFor: (item) => {
          const value = item[from];
          if (!value) return undefined;
          if (item[to]) throw bothFieldsError(move, itemToJson(itemKey(shape, item)));
          return {
            key: itemKey(shape, item),
            set: { [to]: value },
            remove: [from],
            expected: { [from]: value, [to]: undefined },
          };
        },
      };
    }
    case 'convert': {
      const field = fieldFrom(move.field);
      return {
        attributes: [field.name],
        filter: { text: `attribute_exists(${nameInFilter(field.name)})` },
        updateFor: (item) => conversionUpdate(shape, field, move.from, item),
      };
    }
  }
}

function fillValue(client: DynamoClient, field: Field) {
  if (field.autoGenerate) return generateUuid();
  if (field.default === 'now' && TEMPORAL_TYPES.has(field.type)) return encodeNow(client.clock.now(), field);
  return encodeValue(field.default as Parameters<typeof encodeValue>[0], field);
}

function conversionUpdate(
  shape: TableShape,
  field: Field,
  from: ConvertMove['from'],
  item: Item,
): ItemUpdate | undefined {
  const value = item[field.name];
  if (isNull(value)) return undefined;
  const result = convertValue(value, field, from);
  if ('problem' in result) {
    throw new SvcError('data_violates', 'An item written during the migration does not allow the change.', {
      why: `${JSON.stringify(itemToJson(itemKey(shape, item)))}: ${result.problem}.`,
      next: ['Correct that item, then run the migration again.'],
    });
  }
  if (isDeepStrictEqual(result.value, value)) return undefined;
  return { key: itemKey(shape, item), set: { [field.name]: result.value }, expected: { [field.name]: value } };
}

function bothFieldsError({ from, to }: FieldMove & { kind: 'rename' }, key: object): SvcError {
  return new SvcError('data_violates', `An item written during the migration has both "${from}" and "${to}".`, {
    why: `${JSON.stringify(key)}: one of the two would be lost.`,
    next: ['Remove one of the two from that item, then run the migration again.'],
  });
}

export interface ItemCheck extends Pick<MovePlan, 'attributes' | 'filter'> {
  problem(item: Item): string | undefined;
}

/** The check of every item before a move starts. */
function moveCheck(move: FieldMove): ItemCheck {
  switch (move.kind) {
    case 'rename':
      return {
        attributes: [move.from, move.to],
        filter: {
          text: `attribute_exists(${nameInFilter(move.from)}) AND attribute_exists(${nameInFilter(move.to)})`,
        },
        problem: () => `it has both "${move.from}" and "${move.to}"`,
      };
    case 'convert': {
      const field = fieldFrom(move.field);
      return {
        attributes: [field.name],
        problem(item) {
          const value = item[field.name];
          const result = convertValue(value, field, move.from);
          if ('problem' in result) return `${field.name}: ${result.problem}`;
          if (!move.key || value === undefined || isDeepStrictEqual(result.value, value)) return undefined;
          return `${field.name}: it is in a key and its encoding would change`;
        },
      };
    }
    case 'fill':
    case 'remove':
      return { attributes: [], problem: () => undefined };
  }
}

/** Existing values under the name of an added field are kept, so they must already be valid values of the field. */
export function addedFieldCheck(added: NamedFieldDefinition): ItemCheck {
  const field = fieldFrom(added);
  const { name, type } = field;
  return {
    attributes: [name],
    filter: { text: `attribute_exists(${nameInFilter(name)})` },
    problem(item) {
      const value = item[name];
      // A required field gets its default instead of a NULL.
      if (isNull(value)) return undefined;
      const result = convertValue(value, field);
      if ('problem' in result) return `${name}: ${result.problem}`;
      return isDeepStrictEqual(result.value, value)
        ? undefined
        : `${name}: it is not stored as a value of type ${type}`;
    },
  };
}

function fieldFrom({ name, ...definition }: NamedFieldDefinition): Field {
  return defineField(name, definition, 'a migration');
}
