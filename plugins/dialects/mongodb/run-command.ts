import type { Document } from 'mongodb';
import { SvcError } from '../../../core/errors.ts';
import { fromExtended, type Server } from './open.ts';
import { commandOf } from './raw.ts';

/** A command in the user's words, on the database or on `admin` where it says so. */
export async function runCommand(server: Server, text: string, onChange?: () => void): Promise<Document> {
  const { $db, ...own } = commandOf(text);
  const database = $db === 'admin' ? server.client.db('admin') : server.db;
  const command = fromExtended(server, own);
  const answer = await database.command(command).catch((error) => {
    // It may have changed something before it failed.
    onChange?.();
    throw error;
  });
  const [first] = (answer.writeErrors ?? []) as { readonly code: number; readonly errmsg: string }[];
  if (first) {
    if (answer.n > 0) onChange?.();
    throw new SvcError(
      first.code === 11000 || first.code === 121 ? 'data_violates' : 'migration_failed',
      'MongoDB refused a command.',
      {
        why: `${first.code}: ${first.code === 11000 ? 'the key is there already' : first.errmsg}`,
        details: { engineCode: first.code },
      },
    );
  }
  return answer;
}
