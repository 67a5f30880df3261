import { SvcError } from '../../../core/errors.ts';
import type { Field } from '../../../core/schema/model.ts';
import { keyOfCatalog, readCatalog } from './catalog.ts';
import { converted } from './convert.ts';
import { decimalOf, placesOf } from './decimal.ts';
import { quote } from './names.ts';
import type { RunPlace } from './place.ts';
import { scan } from './scan.ts';
import type { Conversion } from './statement.ts';

/** Rows whose values a narrower field could not have are counted, and a few of them named: nothing has changed then. */
export const refuseUnfit = (place: RunPlace, table: string, field: Field): Promise<void> =>
  refuse(place, table, field.name, (value) => fits(value, field));

/** The same of values that could not be converted without a loss. */
export function refuseUnconverted(place: RunPlace, table: string, { from, to }: Conversion): Promise<void> {
  const writing = { types: place.session.types, moment: new Date() };
  return refuse(place, table, from.name, (value) => 'value' in converted(value, from, to, writing));
}

async function refuse(
  { session }: RunPlace,
  table: string,
  name: string,
  isFine: (value: unknown) => boolean,
): Promise<void> {
  const [found] = await readCatalog(session, [table]);
  if (!found) throw new SvcError('collection_unknown', `The table "${table}" does not exist.`);
  const partition = keyOfCatalog(found, 'partition_key').map(({ name }) => name);
  const keys = [...partition, ...keyOfCatalog(found, 'clustering').map(({ name }) => name)];
  const unfit: string[] = [];
  let count = 0;
  for await (const { rows } of scan(session, { table, partition, selected: [...keys, name].map(quote) })) {
    for (const row of rows) {
      if (keys.some((key) => row[key] === null) || isFine(row[name])) continue;
      count += 1;
      if (unfit.length < 3) unfit.push(keys.map((key) => `${key} ${String(row[key])}`).join(', '));
    }
  }
  if (count === 0) return;
  throw new SvcError('data_violates', `Rows of "${table}" do not allow the change of "${name}".`, {
    why: `${count} ${count === 1 ? 'row has a value' : 'rows have values'} that it could not have, for one: ${unfit.join('; ')}.`,
    state: 'Nothing was changed.',
    next: ['Correct those rows first.'],
    details: { count },
  });
}

function fits(value: unknown, field: Field): boolean {
  if (value === null || value === undefined) return field.required !== true;
  if (field.enumValues) return field.enumValues.includes(String(value));
  if (field.type === 'string' && field.length !== undefined) return [...String(value)].length <= field.length;
  if (field.type === 'binary' && field.length !== undefined) return (value as Buffer).length <= field.length;
  if (field.type !== 'decimal' || field.precision === undefined) return true;
  const { before, behind } = placesOf(decimalOf(value));
  return behind <= (field.scale ?? 0) && before <= field.precision - (field.scale ?? 0);
}
