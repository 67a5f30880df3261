/** Imports a user module with Node's `import()`. build.ts replaces this file: a script from V8's cache has no `import()`. */
export function nativeImport(specifier: string): Promise<Record<string, unknown>> {
  return import(specifier);
}
