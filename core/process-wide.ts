/**
 * State of the whole process. Module state is not: the command line and the package are two copies of this code, and a
 * plugin imports the second one. The value must keep its shape between versions of the package.
 */
export function processWide<T extends object>(name: string, create: () => T): T {
  const key = Symbol.for(`@svc/sdk.${name}`);
  const values = globalThis as { [key: symbol]: T | undefined };
  values[key] ??= create();
  return values[key];
}
