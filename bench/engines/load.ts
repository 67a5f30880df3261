import { migration } from '../../core/migration/builder.ts';
import type { Migration } from '../../core/migration/migration.ts';

/** Migrations of one table each, with a key and a string. */
export function createMigrations(count: number): readonly Migration[] {
  return Array.from({ length: count }, (_, index) => {
    const number = String(index + 1).padStart(5, '0');
    return migration(`20260101_0${number}_create_t_${number}`)
      .createCollection(`t_${number}`, [
        { name: 'id', type: 'integer', primaryKey: true },
        { name: 'name', type: 'string', length: 255, required: true },
      ])
      .build();
  });
}

/** A value for every row that `Bare.load` writes. */
export const backfill: Migration = migration('20260101_000000_kind')
  .addField('load', { name: 'kind', type: 'string', default: 'person' })
  .build();
