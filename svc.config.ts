import { defineConfig } from './config/define.ts';

/** For trying the CLI in a clone: an embedded PostgreSQL, or the server of the tests. */
export default defineConfig({
  product: 'svc',
  env: 'dev',
  databases: {
    main: {
      dialect: 'postgresql',
      url: { dev: 'pglite://./.svc/main', server: process.env.SVC_TEST_POSTGRESQL_URL },
    },
  },
});
