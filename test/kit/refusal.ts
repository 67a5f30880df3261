import { type ErrorCode, isSvcError, type SvcError } from '../../core/errors.ts';

/** The refusal, which must have this code. Anything else, success included, fails the test. */
export async function refused(work: Promise<unknown>, code: ErrorCode): Promise<SvcError> {
  try {
    await work;
  } catch (error) {
    if (isSvcError(error) && error.code === code) return error;
    throw error;
  }
  throw new Error(`${code} was expected, and nothing was refused`);
}
