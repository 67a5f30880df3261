import { AssertionError } from 'node:assert';
import type { ErrorCode } from '../../core/error-codes.ts';
import { isSvcError, type SvcError } from '../../core/errors.ts';

/** Returns the SvcError with this code. Success and any other error fail the test. */
export async function expectError(work: Promise<unknown>, code: ErrorCode): Promise<SvcError> {
  try {
    await work;
  } catch (error) {
    if (isSvcError(error) && error.code === code) return error;
    throw error;
  }
  throw new Error(`${code} was expected, but nothing was thrown`);
}

/** Returns the error of a promise that must reject. If it resolves, `message` is the failure. */
export async function expectRejection(work: Promise<unknown>, message: string): Promise<Error> {
  try {
    await work;
  } catch (error) {
    if (error instanceof Error) return error;
    throw new AssertionError({ message: `it threw something other than an Error: ${String(error)}` });
  }
  throw new AssertionError({ message });
}
