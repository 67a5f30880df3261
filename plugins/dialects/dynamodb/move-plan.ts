import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../../../core/errors.ts';
import { CLOCK_TYPES } from '../../../core/schema/default.ts';
import { defineField } from '../../../core/schema/define.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { NamedField } from '../../../core/schema/operation.ts';
import type { Api } from './api.ts';
import { type Item, isNull, plainItem } from './attribute.ts';
import type { Change } from './change.ts';
import { converted } from './convert.ts';
import type { Work } from './move.ts';
import type { TableShape } from './shape.ts';
import type { Move } from './step.ts';
import { attributeName, keyOf, type Sweep } from './sweep.ts';
import { encoded, generated, nowOf } from './value.ts';

type Converting = Extract<Move, { kind: 'convert' }>;
type Planned = Pick<Sweep, 'attributes' | 'filter' | 'change'>;

/** What a move reads of each item and makes of it. */
export function planned({ api }: Pick<Work, 'api'>, shape: TableShape, move: Move): Planned {
  switch (move.kind) {
    case 'fill': {
      const field = fieldFrom(move.field);
      const name = attributeName(field.name);
      return {
        attributes: [field.name],
        // A NULL is a value as good as any, unless there must be one.
        filter: field.required
          ? {
              text: `(attribute_not_exists(${name}) OR attribute_type(${name}, :null))`,
              values: { ':null': { S: 'NULL' } },
            }
          : { text: `attribute_not_exists(${name})` },
        change: (item) => {
          const there = item[field.name];
          if (there && !(field.required && isNull(there))) return undefined;
          return { key: keyOf(shape, item), set: { [field.name]: filling(api, field) }, was: { [field.name]: there } };
        },
      };
    }
    case 'remove':
      return {
        attributes: [move.field],
        filter: { text: `attribute_exists(${attributeName(move.field)})` },
        change: (item) => {
          const value = item[move.field];
          // A field that was added anew since it was read is another one.
          return value && { key: keyOf(shape, item), remove: [move.field], was: { [move.field]: value } };
        },
      };
    case 'rename': {
      const { from, to } = move;
      return {
        attributes: [from, to],
        filter: { text: `attribute_exists(${attributeName(from)})` },
        change: (item) => {
          const value = item[from];
          if (!value) return undefined;
          if (item[to]) throw both(move, plainItem(keyOf(shape, item)));
          return {
            key: keyOf(shape, item),
            set: { [to]: value },
            remove: [from],
            was: { [from]: value, [to]: undefined },
          };
        },
      };
    }
    case 'convert': {
      const field = fieldFrom(move.field);
      return {
        attributes: [field.name],
        filter: { text: `attribute_exists(${attributeName(field.name)})` },
        change: (item) => conversion(shape, field, move.from, item),
      };
    }
  }
}

function filling(api: Api, field: Field) {
  if (field.autoGenerate) return generated();
  if (field.default === 'now' && CLOCK_TYPES.has(field.type)) return nowOf(api.clock.now(), field);
  return encoded(field.default as Parameters<typeof encoded>[0], field);
}

function conversion(shape: TableShape, field: Field, from: Converting['from'], item: Item): Change | undefined {
  const value = item[field.name];
  if (isNull(value)) return undefined;
  const result = converted(value, field, from);
  if ('problem' in result) {
    throw new SvcError('data_violates', `An item came in between that does not allow the change.`, {
      why: `${JSON.stringify(plainItem(keyOf(shape, item)))}: ${result.problem}.`,
      next: ['Correct that item, then let the migration go on.'],
    });
  }
  if (isDeepStrictEqual(result.value, value)) return undefined;
  return { key: keyOf(shape, item), set: { [field.name]: result.value }, was: { [field.name]: value } };
}

function both({ from, to }: Move & { kind: 'rename' }, key: object): SvcError {
  return new SvcError('data_violates', `An item came in between that has both "${from}" and "${to}".`, {
    why: `${JSON.stringify(key)}: one of the two would be lost.`,
    next: [`Remove one of the two from that item, then let the migration go on.`],
  });
}

export interface Tested extends Pick<Planned, 'attributes' | 'filter'> {
  problem(item: Item): string | undefined;
}

/** What a move has to find in every item, or why it cannot be done. */
export function tested(move: Move): Tested {
  switch (move.kind) {
    case 'rename':
      return {
        attributes: [move.from, move.to],
        filter: {
          text: `attribute_exists(${attributeName(move.from)}) AND attribute_exists(${attributeName(move.to)})`,
        },
        problem: () => `there is a "${move.to}" beside "${move.from}" already`,
      };
    case 'convert': {
      const field = fieldFrom(move.field);
      return {
        attributes: [field.name],
        problem(item) {
          const value = item[field.name];
          const result = converted(value, field, move.from);
          if ('problem' in result) return `${field.name}: ${result.problem}`;
          if (!move.key || value === undefined || isDeepStrictEqual(result.value, value)) return undefined;
          return `${field.name}: it is in a key and would have to be written differently`;
        },
      };
    }
    case 'fill':
    case 'remove':
      return { attributes: [], problem: () => undefined };
  }
}

/** What items have under the name of a field that is added stays as it is: it has to be what the field holds. */
export function testedAs(added: NamedField): Tested {
  const field = fieldFrom(added);
  const { name, type } = field;
  return {
    attributes: [name],
    filter: { text: `attribute_exists(${attributeName(name)})` },
    problem(item) {
      const value = item[name];
      // Filled where there must be one.
      if (isNull(value)) return undefined;
      const result = converted(value, field);
      if ('problem' in result) return `${name}: ${result.problem}`;
      return isDeepStrictEqual(result.value, value) ? undefined : `${name}: it is not stored as type ${type} is`;
    },
  };
}

function fieldFrom({ name, ...definition }: NamedField): Field {
  return defineField(name, definition, 'a migration');
}
