import { isSvcError, SvcError } from '../errors.ts';
import type { Path } from './shape.ts';

/** A table may be called `constructor`: what an object inherits does not count. */
export function own<T>(map: { readonly [name: string]: T } | undefined, name: string): T | undefined {
  return map && Object.hasOwn(map, name) ? map[name] : undefined;
}

export function invalid(message: string, why: string, path: Path): SvcError {
  return new SvcError('schema_invalid', message, { why, details: { path } });
}

/** Refusals inside get the place they happened at. */
export function at<T>(path: Path, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!isSvcError(error)) throw error;
    const inner = Array.isArray(error.details.path) ? error.details.path : [];
    // The `references` of a field are those of its constraint.
    const rest = inner[0] === 'references' && path.at(-1) === 'references' ? inner.slice(1) : inner;
    throw error.with({ details: { path: [...path, ...rest] } });
  }
}
