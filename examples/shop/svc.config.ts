import { defineConfig } from '@svc/sdk/config';

export default defineConfig({
  product: 'shop',
  env: 'dev',
  databases: {
    main: { dialect: 'postgresql', url: { dev: 'pglite://./.svc/main', prd: process.env.DATABASE_URL } },
  },
});
