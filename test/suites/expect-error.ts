import { AssertionError } from 'node:assert';
import { type ErrorCode, isSvcError, type SvcError } from '../../core/errors.ts';

/** The refusal, which must have this code. Anything else, success included, fails the test. */
export async function expectError(work: Promise<unknown>, code: ErrorCode): Promise<SvcError> {
  try {
    await work;
  } catch (error) {
    if (isSvcError(error) && error.code === code) return error;
    throw error;
  }
  throw new Error(`${code} was expected, and nothing was refused`);
}

/** The error that the work ends with; that it does not fail is the failure, told as `otherwise` says. */
export async function expectRejection(work: Promise<unknown>, otherwise: string): Promise<Error> {
  try {
    await work;
  } catch (error) {
    if (error instanceof Error) return error;
    throw new AssertionError({ message: `it threw what is no Error: ${String(error)}` });
  }
  throw new AssertionError({ message: otherwise });
}
