import { type ErrorCode, SvcError } from '../errors.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../schema/shape.ts';

/** Names the argument of a problem and gives the code that goes with it. */
type CodeOf = (argument: string) => ErrorCode;

/** The arguments of a call, checked and copied: what their owner does to them later has no effect. */
export function ownArguments<T extends object>(
  call: string,
  given: T,
  shapes: { readonly [K in keyof T]-?: Shape },
  { required = [], code }: { readonly required?: readonly (keyof T & string)[]; readonly code: CodeOf },
): T {
  refuseArguments(call, shapeProblems(given, { properties: shapes, required }), code);
  return ownCopy(given, call, code(''));
}

/** One refusal for all problems of a call, in its caller's words. */
export function refuseArguments(call: string, problems: readonly Problem[], code: CodeOf): void {
  const [first] = problems;
  if (!first) return;
  throw new SvcError(code(String(first.path[0] ?? '')), `${call} was called with what it cannot use.`, {
    why: problems.map(problemText).join(' '),
    state: 'Nothing was changed.',
    details: { path: first.path },
  });
}

export function ownCopy<T>(value: T, what: string, code: ErrorCode): T {
  try {
    return structuredClone(value);
  } catch (error) {
    throw new SvcError(code, `${what} was called with what cannot be copied.`, {
      why: error instanceof Error ? error.message : String(error),
      state: 'Nothing was changed.',
      next: ['Give it plain data: no functions, no proxies.'],
    });
  }
}
