// No tool: PGlite opens the folder argv[2] and counts what is applied. As in the command line, V8 compiles quickly.
import { setFlagsFromString } from 'node:v8';

setFlagsFromString('--liftoff-only');
const { PGlite } = await import('@electric-sql/pglite');
const pglite = await PGlite.create({ dataDir: process.argv[2] });
await pglite.query('SELECT count(*) FROM _svc_migrations');
await pglite.close();
