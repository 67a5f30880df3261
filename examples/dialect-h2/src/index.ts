import { definePlugin } from '@svc/sdk';
import { sqlServerDialect } from '@svc/sdk/dialect';
import { catalog } from './catalog.ts';
import { open } from './server.ts';
import { ERRORS, RULES, SYNTAX } from './syntax.ts';

export const h2 = sqlServerDialect({
  rules: RULES,
  syntax: SYNTAX,
  errors: ERRORS,
  defaultPort: 5435,
  open,
  catalog,
});

export default definePlugin({
  name: 'h2',
  api: 1,
  apply: (kernel) => kernel.dialects.register(RULES.name, h2),
});

declare module '@svc/sdk' {
  interface Dialects {
    h2: true;
  }
}
