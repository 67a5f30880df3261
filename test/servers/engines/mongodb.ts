import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { debian, serversIn, whyDebianUnavailable } from '../debian.ts';
import { fromDocker } from '../docker.ts';
import { findProgram, localMachine, serversTempFolder } from '../machine.ts';
import type { Source } from '../source.ts';
import { startPostgresql } from './postgresql.ts';

const PACKAGE = 'postgresql-18-documentdb';
const GATEWAY = fileURLToPath(new URL('../documentdb/main.ts', import.meta.url));
const LOADER = import.meta.resolve('tsx');

const urlAt = (port: number): string => `mongodb://127.0.0.1:${port}/`;

const installed: Source = {
  from: 'an installed mongod',
  whyUnavailable: () => (findProgram('mongod') === undefined ? 'mongod is not installed' : undefined),
  prepare: async () => ({
    folder: serversTempFolder(),
    async start(launch) {
      const port = await launch.port(27017);
      const data = join(launch.folder, 'data');
      mkdirSync(data);
      launch.report(`starting on port ${port}`);
      launch.spawn(localMachine, findProgram('mongod') ?? 'mongod', [
        ...['--dbpath', data, '--bind_ip', '127.0.0.1', '--port', String(port)],
        ...['--unixSocketPrefix', launch.folder, '--wiredTigerCacheSizeGB', '0.25'],
      ]);
      await launch.waitForAnswer('mongodb', urlAt(port));
      return urlAt(port);
    },
  }),
};

/** Not MongoDB: Debian's DocumentDB on PostgreSQL, with the gateway of this folder in front. */
const documentdb: Source = {
  from: `Debian's ${PACKAGE} and a gateway`,
  whyUnavailable: () => whyDebianUnavailable(PACKAGE),
  async prepare(report) {
    const root = await debian(PACKAGE, [PACKAGE], report);
    return {
      folder: serversIn(root),
      async start(launch) {
        const port = await launch.port(27017);
        const postgresqlUrl = await startPostgresql({ root }, launch, await launch.port(5433), [
          'shared_preload_libraries=pg_cron,pg_documentdb_core,pg_documentdb',
          'cron.database_name=postgres',
        ]);
        const client = new pg.Client({ connectionString: postgresqlUrl });
        await client.connect();
        try {
          await client.query('CREATE EXTENSION documentdb CASCADE');
        } finally {
          await client.end();
        }
        const args = ['--import', LOADER, GATEWAY, '--port', String(port), '--postgresql', postgresqlUrl];
        launch.spawn(localMachine, process.execPath, args);
        await launch.waitForAnswer('mongodb', urlAt(port));
        return urlAt(port);
      },
    };
  },
};

export const mongodb: readonly Source[] = [installed, documentdb, fromDocker('mongodb', 27017, urlAt)];
