import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { debian, debianMissing, serversIn } from '../debian.ts';
import { fromDocker } from '../docker.ts';
import { here, program } from '../machine.ts';
import type { Source } from '../source.ts';
import { temporary } from '../temporary.ts';
import { startPostgresql } from './postgresql.ts';

const PACKAGE = 'postgresql-18-documentdb';
const GATEWAY = fileURLToPath(new URL('../documentdb/main.ts', import.meta.url));
const LOADER = import.meta.resolve('tsx');

const urlAt = (port: number): string => `mongodb://127.0.0.1:${port}/`;

const installed: Source = {
  from: 'an installed mongod',
  missing: () => (program('mongod') === undefined ? 'mongod is not installed' : undefined),
  prepare: async () => ({
    folder: temporary(),
    async start(launch) {
      const port = await launch.port(27017);
      const data = join(launch.folder, 'data');
      mkdirSync(data);
      launch.tell(`starts on port ${port}`);
      launch.spawn(here, program('mongod') ?? 'mongod', [
        ...['--dbpath', data, '--bind_ip', '127.0.0.1', '--port', String(port)],
        ...['--unixSocketPrefix', launch.folder, '--wiredTigerCacheSizeGB', '0.25'],
      ]);
      await launch.answers('mongodb', urlAt(port));
      return urlAt(port);
    },
  }),
};

/** Not MongoDB: DocumentDB on PostgreSQL, which Debian packages, and our own gateway before it. */
const documentdb: Source = {
  from: `Debian's ${PACKAGE} and a gateway`,
  missing: () => debianMissing(PACKAGE),
  async prepare(tell) {
    const root = await debian(PACKAGE, [PACKAGE], tell);
    return {
      folder: serversIn(root),
      async start(launch) {
        const port = await launch.port(27017);
        const behind = await startPostgresql({ root }, launch, await launch.port(5433), [
          'shared_preload_libraries=pg_cron,pg_documentdb_core,pg_documentdb',
          'cron.database_name=postgres',
        ]);
        const client = new pg.Client({ connectionString: behind });
        await client.connect();
        try {
          await client.query('CREATE EXTENSION documentdb CASCADE');
        } finally {
          await client.end();
        }
        const args = ['--import', LOADER, GATEWAY, '--port', String(port), '--postgresql', behind];
        launch.spawn(here, process.execPath, args);
        await launch.answers('mongodb', urlAt(port));
        return urlAt(port);
      },
    };
  },
};

export const mongodb: readonly Source[] = [installed, documentdb, fromDocker('mongodb', 27017, urlAt)];
