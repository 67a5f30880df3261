/**
 * Makes a value on first use. V8 looks up the properties of Unicode as soon as a pattern is made, which takes a command
 * that shows nothing 10 ms.
 */
export function lazy<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
