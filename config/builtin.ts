/** Dialects that need no line in the configuration: each is loaded when a database names it. */
export const builtinDialects: Readonly<Record<string, () => Promise<{ readonly default: unknown }>>> = {
  postgresql: () => import('../plugins/dialects/postgresql/index.ts'),
};
