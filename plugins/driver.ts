import { SvcError } from '../core/errors.ts';

/** What a driver is called and how it is imported. */
export interface Driver<T> {
  readonly name: string;
  readonly package: string;
  load(): Promise<T>;
}

/** Throws `driver_missing`. */
export async function loadDriver<T>(driver: Driver<T>): Promise<T> {
  try {
    return await driver.load();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!/^(ERR_)?MODULE_NOT_FOUND$/.test(code)) throw error;
    throw new SvcError('driver_missing', `${driver.name} is not installed.`, {
      next: [`npm install ${driver.package}`],
      cause: error,
    });
  }
}
