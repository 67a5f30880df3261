import type { Engine } from './engine.ts';
import { cassandra } from './engines/cassandra.ts';
import { dynamodb } from './engines/dynamodb.ts';
import { mariadb } from './engines/mariadb.ts';
import { mongodb } from './engines/mongodb.ts';
import { mysql } from './engines/mysql.ts';
import { postgresql } from './engines/postgresql.ts';
import { rabbitmq } from './engines/rabbitmq.ts';
import type { Source } from './source.ts';

/** Ways to come by a server, the first that can be had is taken. */
export const SOURCES: Readonly<Record<Engine, readonly Source[]>> = {
  postgresql,
  mysql,
  mariadb,
  mongodb,
  dynamodb,
  cassandra,
  rabbitmq,
};
