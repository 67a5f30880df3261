import { definePlugin } from '@svc/sdk';
import { embeddedDialect } from '@svc/sdk/dialect';
import { openDatabase } from './database.ts';
import { ERRORS, RULES, SYNTAX } from './syntax.ts';

export const duckdb = embeddedDialect({ rules: RULES, syntax: SYNTAX, errors: ERRORS, open: openDatabase });

export default definePlugin({
  name: 'duckdb',
  api: 1,
  apply: (kernel) => kernel.dialects.register(RULES.name, duckdb),
});

declare module '@svc/sdk' {
  interface Dialects {
    duckdb: true;
  }
}
