import { type FileJob, jobs, openWhenFree } from './key-value-file-jobs.ts';
import { describeTestError } from './suite.ts';

/**
 * A process of its own with a key-value file: `node key-value-file-process.ts <URL of the module> <file> <job> <arguments>`. The
 * module exports `openDatabase`.
 */

const [module = '', path = '', job = '', first = '', second] = process.argv.slice(2);
process.on('disconnect', () => process.exit());
try {
  const { openDatabase } = await import(module);
  const value = await jobs[job as FileJob](() => openWhenFree(openDatabase, path), first, second);
  process.send?.({ value });
} catch (error) {
  process.send?.({ error: describeTestError(error) }, () => process.exit());
}
