import { AssertionError } from 'node:assert';

/** The error that the work ends with; that it does not fail is the failure, told as `otherwise` says. */
export async function failed(work: Promise<unknown>, otherwise: string): Promise<Error> {
  try {
    await work;
  } catch (error) {
    if (error instanceof Error) return error;
    throw new AssertionError({ message: `it threw what is no Error: ${String(error)}` });
  }
  throw new AssertionError({ message: otherwise });
}
