import type { Dialect } from '../../../core/dialect.ts';
import { dialectOf } from '../mysql/dialect-of.ts';
import type { Flavour } from '../mysql/flavour.ts';
import { openMariadb } from './driver.ts';
import { mariadbTraits } from './traits.ts';

export const mariadbFlavour: Flavour = {
  name: 'mariadb',
  title: 'MariaDB',
  other: { name: 'mysql', title: 'MySQL' },
  schemes: ['mariadb:', 'mysql:'],
  isMine: (version) => /mariadb/i.test(version),
  oldest: [10, 6, 0],
  binaryCollation: 'utf8mb4_nopad_bin',
  open: openMariadb,
  traits: mariadbTraits,
};

/** MariaDB from 10.6 on. */
export const mariadb: Dialect = dialectOf(mariadbFlavour);
