import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { errorMessage, SvcError } from '../../core/errors.ts';
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
export function loadDriver<T>(driver: Driver<T>, root = process.cwd()): Promise<T> {
  const module = driver.module ?? driver.package;
  const found = bundledDrivers.includes(module) ? undefined : resolveModule(module, join(root, 'package.json'));
  const isOwn = found === undefined || found === resolveModule(module, import.meta.filename);
  return load(driver, root, () => (isOwn ? driver.load() : import(pathToFileURL(found).href)));
}

/**
 * Loads the driver as a program of the project does, which lacks the drivers bundled with the command line. Throws
 * `driver_missing`.
 */
export async function assertInstalled(driver: Driver<unknown>, root = process.cwd()): Promise<void> {
  const module = driver.module ?? driver.package;
  const found = resolveModule(module, join(root, 'package.json')) ?? resolveModule(module, import.meta.filename);
  if (found === undefined) {
    throw new SvcError('driver_missing', `${driver.name} is not installed in this project.`, {
      why: `The svc command contains its own, but a program loads the package ${driver.package}. It was not found from ${root}.`,
      next: [`npm install ${driver.package}`],
    });
  }
  await load(driver, root, () => import(pathToFileURL(found).href));
}

async function load<T>(driver: Driver<T>, root: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (/^(ERR_)?MODULE_NOT_FOUND$/.test(code)) {
      throw new SvcError('driver_missing', `${driver.name} is not installed.`, {
        why: `It was not found from ${root}, nor from ${dirname(import.meta.filename)}, where svc is installed.`,
        next: [`npm install ${driver.package}`],
        cause: error,
      });
    }
    throw new SvcError('driver_missing', `${driver.name} cannot be loaded.`, {
      why: `The package ${driver.package} throws: ${errorMessage(error)}`,
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
