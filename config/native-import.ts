/** Node's own import of a module of the user's. build.ts has another one for the script, in which `import()` is no more. */
export function nativeImport(specifier: string): Promise<Record<string, unknown>> {
  return import(specifier);
}
