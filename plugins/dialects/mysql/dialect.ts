import type { Dialect } from '../../../core/dialect.ts';
import { dialectOf } from './dialect-of.ts';
import type { Flavour } from './flavour.ts';
import { mysqlTraits } from './mysql-traits.ts';
import { openMysql2 } from './mysql2.ts';

export const mysqlFlavour: Flavour = {
  name: 'mysql',
  title: 'MySQL',
  other: { name: 'mariadb', title: 'MariaDB' },
  schemes: ['mysql:'],
  isMine: (version) => !/mariadb/i.test(version),
  // Of the collation with which keys of records compare, and of checks that hold.
  oldest: [8, 0, 17],
  binaryCollation: 'utf8mb4_0900_bin',
  open: openMysql2,
  traits: mysqlTraits,
};

/** MySQL from 8.0 on. */
export const mysql: Dialect = dialectOf(mysqlFlavour);
