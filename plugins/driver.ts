import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SvcError } from '../core/errors.ts';
import { inside } from './inside.ts';

/** What a driver is called and how it is imported. */
export interface Driver<T> {
  readonly name: string;
  /** What npm is told to install. */
  readonly package: string;
  /** What `load` imports, where that is not the package. */
  readonly module?: string;
  /** From where svc itself is installed. */
  load(): Promise<T>;
}

/** The project's own driver, else the one beside svc, which may be installed elsewhere. Throws `driver_missing`. */
export async function loadDriver<T>(driver: Driver<T>, root = process.cwd()): Promise<T> {
  const module = driver.module ?? driver.package;
  const found = inside.includes(module) ? undefined : resolved(module, join(root, 'package.json'));
  try {
    if (found === undefined || found === resolved(module, import.meta.filename)) return await driver.load();
    return await import(pathToFileURL(found).href);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!/^(ERR_)?MODULE_NOT_FOUND$/.test(code)) throw error;
    throw new SvcError('driver_missing', `${driver.name} is not installed.`, {
      why: `It was looked for from ${root}, and from ${dirname(import.meta.filename)}, where svc is.`,
      next: [`npm install ${driver.package}`],
      cause: error,
    });
  }
}

function resolved(module: string, from: string): string | undefined {
  try {
    return createRequire(from).resolve(module);
  } catch {
    // Not there, or for `import` alone.
    return undefined;
  }
}
