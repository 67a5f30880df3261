import { isSvcError, SvcError } from '../../../core/errors.ts';
import type { Exec } from '../../sql/session.ts';
import { refusal } from './errors.ts';

/** Keeps the server from giving a required timestamp a default and ON UPDATE of its own, as MariaDB does up to 10.9. */
export async function explicitTimestamps(exec: Exec, title: string): Promise<void> {
  try {
    await exec('SET SESSION explicit_defaults_for_timestamp = 1');
  } catch (error) {
    // Older servers have it in their configuration only, and MySQL lets only administrators say it.
    const told = refusal(error);
    if (!isSvcError(told) || told.code === 'connection_lost') throw error;
    throw new SvcError('not_supported', `This ${title} server makes every required timestamp change by itself.`, {
      why: `Its explicit_defaults_for_timestamp is OFF, and the session may not switch it on: ${told.why}`,
      next: ['Write explicit_defaults_for_timestamp = ON into the configuration of the server.'],
      cause: told,
    });
  }
}
