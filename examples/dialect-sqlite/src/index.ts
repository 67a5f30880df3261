import { definePlugin } from '@svc/sdk';
import { embeddedDialect } from '@svc/sdk/dialect';
import { openDatabase } from './database.ts';
import { ERRORS, RULES, SYNTAX } from './syntax.ts';

export const sqlite = embeddedDialect({
  rules: RULES,
  syntax: SYNTAX,
  errors: ERRORS,
  open: openDatabase,
  begin: 'BEGIN IMMEDIATE',
  // With foreign keys on, dropping a table would also delete the rows that reference it.
  rebuilding: { before: 'PRAGMA foreign_keys = OFF', after: 'PRAGMA foreign_keys = ON' },
});

export default definePlugin({
  name: 'sqlite',
  api: 1,
  apply: (kernel) => kernel.dialects.register(RULES.name, sqlite),
});

declare module '@svc/sdk' {
  interface Dialects {
    sqlite: true;
  }
}
