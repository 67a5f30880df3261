import type { ErrorCode } from '../error-codes.ts';
import { SvcError } from '../errors.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../validate-shape.ts';

/** Returns the error code for problems with this argument. */
type ArgumentErrorCode = (argument: string) => ErrorCode;

/** Validates and copies the arguments of a call, so that the caller cannot change them later. */
export function validatedArguments<T extends object>(
  call: string,
  given: { readonly [K in keyof T]: unknown },
  shapes: { readonly [K in keyof T]-?: Shape },
  { required = [], code }: { readonly required?: readonly (keyof T & string)[]; readonly code: ArgumentErrorCode },
): T {
  assertArguments(call, shapeProblems(given, { properties: shapes, required }), code);
  // The shapes describe T.
  return deepCopy(given, call, code('')) as T;
}

/** Throws one error for all problems of a call. */
export function assertArguments(call: string, problems: readonly Problem[], code: ArgumentErrorCode): void {
  const [first] = problems;
  if (!first) return;
  throw new SvcError(code(String(first.path[0] ?? '')), `${call} was called with invalid arguments.`, {
    why: problems.map(problemText).join(' '),
    state: 'Nothing was changed.',
    details: { path: first.path },
  });
}

export function deepCopy<T>(value: T, call: string, code: ErrorCode): T {
  try {
    return structuredClone(value);
  } catch (error) {
    throw new SvcError(code, `${call} was called with arguments that cannot be copied.`, {
      why: error instanceof Error ? error.message : String(error),
      state: 'Nothing was changed.',
      next: ['Pass plain data: no functions, no proxies.'],
    });
  }
}
