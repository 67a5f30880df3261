import { isSvcError } from '../../core/errors.ts';
import type { DatabaseCommand } from './command.ts';

/** Works on databases one after another. At the first failure it stops, and tells which were not started. */
export async function eachDatabase<T extends object>(
  command: DatabaseCommand,
  work: (tag: string) => Promise<T>,
): Promise<({ readonly database: string } & T)[]> {
  const tags = await command.tags();
  const done: ({ readonly database: string } & T)[] = [];
  for (const [index, tag] of tags.entries()) {
    try {
      done.push({ database: tag, ...(await work(tag)) });
    } catch (error) {
      if (!isSvcError(error) || tags.length === 1) throw error;
      const rest = tags.slice(index + 1);
      command.about = tag;
      command.note(`${tag}: failed${rest.length > 0 ? `; not started: ${rest.join(', ')}` : ''}`);
      throw error.with({
        ...(error.state !== undefined && { state: `${tag}: ${error.state}` }),
        details: {
          databases: [
            ...done,
            { database: tag, failed: true },
            ...rest.map((database) => ({ database, started: false })),
          ],
        },
      });
    }
  }
  return done;
}
