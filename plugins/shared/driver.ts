import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SvcError } from '../../core/errors.ts';
import { bundledDrivers } from './bundled-drivers.ts';

/** The name of a driver and how it is imported. */
export interface Driver<T> {
  readonly name: string;
  /** The npm package. */
  readonly package: string;
  /** The module `load` imports, if it differs from `package`. */
  readonly module?: string;
  /** Imports the driver installed with svc. */
  load(): Promise<T>;
}

/** Loads the driver of the project, or else the one installed with svc. Throws `driver_missing`. */
export async function loadDriver<T>(driver: Driver<T>, root = process.cwd()): Promise<T> {
  const module = driver.module ?? driver.package;
  const found = bundledDrivers.includes(module) ? undefined : resolveModule(module, join(root, 'package.json'));
  try {
    if (found === undefined || found === resolveModule(module, import.meta.filename)) return await driver.load();
    return await import(pathToFileURL(found).href);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!/^(ERR_)?MODULE_NOT_FOUND$/.test(code)) throw error;
    throw new SvcError('driver_missing', `${driver.name} is not installed.`, {
      why: `It was not found from ${root}, nor from ${dirname(import.meta.filename)}, where svc is installed.`,
      next: [`npm install ${driver.package}`],
      cause: error,
    });
  }
}

function resolveModule(module: string, from: string): string | undefined {
  try {
    return createRequire(from).resolve(module);
  } catch {
    // Not installed, or a package without an entry for `require`.
    return undefined;
  }
}
