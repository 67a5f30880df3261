import { SvcError } from '../../../core/errors.ts';
import type { Collection, Index } from '../../../core/schema/model.ts';
import { checkNameFits, type NameKind } from '../../../core/schema/names.ts';
import { fillingOf } from './filling.ts';
import { everySpec, isSame, KEY_NAME } from './indexes.ts';
import { names } from './refuses.ts';
import { ruleOf } from './rule.ts';
import { checkClause, checksOf } from './validator.ts';

/** Names, defaults and checks as MongoDB can have them, before anything runs. */
export function checkCollection(collection: Collection): void {
  for (const field of collection.fields.values()) {
    fits(field.name, 'field');
    ruleOf(field);
    fillingOf(field);
  }
  for (const check of checksOf(collection)) checkClause(check);
  for (const index of collection.indexes.values()) checkExpiry(collection, index);
  const specs = everySpec(collection);
  for (const { name } of specs) fits(name, 'index');
  for (const [at, spec] of specs.entries()) {
    const other = specs.slice(0, at).find(({ name }) => name === spec.name);
    if (!other || isSame(other, spec)) continue;
    throw new SvcError('index_exists', `The table "${collection.name}" would have two indexes "${spec.name}".`, {
      why: `On MongoDB keys, unique fields and unique constraints are indexes too: the key is "${KEY_NAME}", a unique field "<field>_key".`,
      next: ['Choose another name.'],
    });
  }
}

/** The server takes a TTL index on any field, and then deletes nothing. */
function checkExpiry({ name: table, fields }: Collection, { name, columns, mongoOptions }: Index): void {
  const seconds = mongoOptions?.expireAfterSeconds;
  if (seconds === undefined) return;
  const [only, ...others] = columns;
  const isDate = ['date', 'datetime', 'timestamp'].includes(fields.get(only?.name ?? '')?.type ?? '');
  if (others.length === 0 && isDate && Number.isInteger(seconds) && seconds >= 0 && seconds <= 2_147_483_647) return;
  throw new SvcError('schema_invalid', `The index "${name}" of "${table}" cannot make documents go away.`, {
    why: 'expireAfterSeconds is a whole number from 0 to 2147483647, and the index is on one field, which holds a date.',
  });
}

export function fits(name: string, kind: NameKind): void {
  checkNameFits('MongoDB', names, name, kind);
}
