import { isExpression } from '../../../core/schema/default.ts';
import type { Collection, Field } from '../../../core/schema/model.ts';
import { type IndexShape, type Key, ON_DEMAND, type TableShape } from './shape.ts';

const keyText = ({ name, type }: Key): string => `${name} ${type}`;

/** What people read of a table that is to be created. */
export function tableText(table: string, shape: TableShape, { fields }: Pick<Collection, 'fields'>): string {
  const { partition, sort, billing, capacity, stream, ttl } = shape;
  const keys = `partition key ${keyText(partition)}${sort ? `, sort key ${keyText(sort)}` : ''}`;
  const keyed = [partition.name, sort?.name];
  const others = [...fields.values()].filter(({ name }) => !keyed.includes(name)).map(fieldText);
  return [
    `${table} (${keys})`,
    ...(billing === ON_DEMAND ? [] : [`${billing} ${capacity?.read}/${capacity?.write}`]),
    ...shape.globals.map((index) => `index ${indexText(index)}`),
    ...shape.locals.map((index) => `local index ${indexText(index)}`),
    ...(stream === undefined ? [] : [`stream ${stream}`]),
    ...(ttl === undefined ? [] : [`time to live ${ttl}, in seconds`]),
    ...(others.length > 0 ? [`described with ${others.join(', ')}`] : []),
  ].join('; ');
}

export function indexText({ name, partition, sort, projection }: IndexShape): string {
  return `${name} (${keyText(partition)}${sort ? `, ${keyText(sort)}` : ''}) ${projection}`;
}

export function fieldText({ name, type, required, default: value }: Field): string {
  const said = value === undefined ? '' : ` default ${isExpression(value) ? value.$expression : JSON.stringify(value)}`;
  return `${name} ${type}${required ? ' required' : ''}${said}`;
}
