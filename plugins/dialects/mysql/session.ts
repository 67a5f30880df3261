import { SvcError } from '../../../core/errors.ts';
import { Queue } from '../../sql/queue.ts';
import { type Exec, rowsOf, type Session } from '../../sql/session.ts';
import type { Address } from './address.ts';
import { ofOpen, ofOpening, refusal, unchanged } from './errors.ts';
import type { Flavour } from './flavour.ts';
import { type Settings, sessionText } from './settings.ts';
import { explicitTimestamps } from './timestamps.ts';
import { isBefore, versionOf } from './version.ts';

/** What the server said when the session began. */
export interface Greeting {
  /** As the server spells it: `10.11.6-MariaDB-log`. */
  readonly version: string;
  readonly database: string;
  /** What tables of the database are made with when nobody says it. */
  readonly charset: string;
  /** `lower_case_table_names` is not 0: names of tables are kept or compared in lower case. */
  readonly foldsTables: boolean;
  /** Of the session: another one later means that a proxy hands statements around. */
  readonly id: number;
}

export interface ServerSession extends Session {
  readonly greeting: Greeting;
}

/** Connects, sets the session up and looks who answers. */
export async function openSession(flavour: Flavour, address: Address, settings: Settings): Promise<ServerSession> {
  const wire = await flavour.open(address, settings).catch((error) => {
    throw unchanged(ofOpening(error));
  });
  let lost: Error | undefined;
  wire.onLost((error) => {
    lost ??= error;
  });
  const send: Exec = async (text) => {
    if (lost) throw lost;
    return wire.query(text);
  };
  const opened: Exec = (text) =>
    send(text).catch((error) => {
      throw ofOpen(error);
    });
  const queue = new Queue();
  try {
    const ask =
      'SELECT version() AS version, database() AS name, connection_id() AS id, @@character_set_database AS charset, @@lower_case_table_names AS folds, @@explicit_defaults_for_timestamp AS explicit';
    const [row] = await rowsOf(send, `${sessionText(settings, 1)}; ${ask}`);
    const greeting = {
      version: String(row?.version),
      database: String(row?.name),
      id: Number(row?.id),
      charset: String(row?.charset),
      foldsTables: Number(row?.folds) !== 0,
    };
    refuseOther(flavour, greeting.version);
    if (Number(row?.explicit) === 0) await explicitTimestamps(send, flavour.title);
    return {
      greeting,
      exec: (text) => queue.run(() => opened(text)),
      alone: (work) => queue.run(() => work(opened)),
      close: async () => wire.close(),
    };
  } catch (error) {
    wire.close();
    throw unchanged(refusal(error));
  }
}

function refuseOther(flavour: Flavour, version: string): void {
  if (!flavour.isMine(version)) {
    const { other } = flavour;
    throw new SvcError('config_invalid', `The server is not ${flavour.title} but ${other.title}.`, {
      why: `It says that its version is ${version}.`,
      next: [`Write in svc.config: dialect: '${other.name}'`],
    });
  }
  if (!isBefore(versionOf(version), flavour.oldest)) return;
  throw new SvcError('not_supported', `This ${flavour.title} server is too old.`, {
    why: `It has version ${version}; ${flavour.oldest.join('.')} is the oldest that svc knows.`,
    next: ['Use a newer server.'],
  });
}
