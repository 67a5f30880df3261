import type { Dialect } from '../../core/dialect.ts';
import { errorMessage, isSvcError, SvcError } from '../../core/errors.ts';
import type { Kernel } from '../../core/kernel.ts';

/** Identifies the physical database of a URL. An error of the dialect that is not an `SvcError` becomes `plugin_invalid`. */
export function identifyDatabase(kernel: Kernel, dialect: Dialect, url: string): string {
  try {
    return dialect.identify(url);
  } catch (error) {
    if (isSvcError(error)) throw error;
    const owner = kernel.dialects.list().find(({ name }) => name === dialect.name);
    throw new SvcError('plugin_invalid', `The dialect "${dialect.name}" could not identify the database of a URL.`, {
      why: `${owner ? `In the plugin "${owner.plugin}", ` : ''}"identify" threw: ${errorMessage(error)}`,
      next: ['Correct the URL of the database.', 'In the plugin: throw url_invalid, with what is wrong with the URL.'],
      cause: error,
    });
  }
}
