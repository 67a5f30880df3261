import type { Dialect } from '../../core/dialect.ts';
import { errorMessage, isSvcError, SvcError } from '../../core/errors.ts';
import type { Kernel } from '../../core/kernel.ts';
import { builtins } from './builtin.ts';

/** Identifies the physical database of a URL. An error of the dialect that is not an `SvcError` becomes `plugin_invalid`. */
export function identifyDatabase(kernel: Kernel, dialect: Dialect, url: string): string {
  try {
    return dialect.identify(url);
  } catch (error) {
    if (isSvcError(error)) throw error;
    throw new SvcError('plugin_invalid', `The dialect "${dialect.name}" could not identify the database of a URL.`, {
      why: `${inPluginOf(kernel, dialect)}"identify" threw: ${errorMessage(error)}`,
      next: ['Correct the URL of the database.', 'In the plugin: throw url_invalid, with what is wrong with the URL.'],
      cause: error,
    });
  }
}

/** An error of a plugin's dialect while it connects. One that is not an `SvcError` becomes `connection_failed`. */
export function connectError(kernel: Kernel, dialect: Dialect, error: unknown): unknown {
  if (isSvcError(error) || Object.hasOwn(builtins.dialects, dialect.name)) return error;
  return new SvcError('connection_failed', `The dialect "${dialect.name}" could not open the database.`, {
    why: `${inPluginOf(kernel, dialect)}"connect" threw: ${errorMessage(error)}`,
    state: 'Nothing was changed.',
    next: [
      'Start the server, or correct the URL of the database.',
      'In the plugin: throw connection_failed, authentication_failed or database_missing, with the reason.',
    ],
    cause: error,
  });
}

function inPluginOf(kernel: Kernel, dialect: Dialect): string {
  const owner = kernel.dialects.list().find(({ name }) => name === dialect.name);
  return owner ? `In the plugin "${owner.plugin}", ` : '';
}
