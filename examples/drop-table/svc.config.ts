import { defineConfig } from '@svc/sdk/config';

export default defineConfig({
  product: 'shop',
  env: 'prd',
  databases: { main: { dialect: 'postgresql', url: 'pglite://./.svc/main' } },
  environments: { prd: { approval: { when: 'destructive', role: 'dba' } } },
  approvals: { store: { database: 'main' }, roles: { dba: ['group:dba'] } },
});
