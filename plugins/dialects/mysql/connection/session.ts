import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { SerialQueue } from '../../../shared/serial-queue.ts';
import { withNothingChanged } from '../../shared/errors.ts';
import { abandonAfter, type ExecSql, rowsOf, type Session } from '../../sql/session.ts';
import { isBefore, parseVersion, type Variant } from '../variant.ts';
import { toConnectError, toSessionError, toSvcError } from './errors.ts';
import { type Settings, sessionSetupSql } from './settings.ts';
import type { Address } from './url.ts';

/** What the server reports at the start of the session. */
export interface ServerInfo {
  /** As the server spells it: `10.11.6-MariaDB-log`. */
  readonly version: string;
  readonly database: string;
  /** The default character set of the database. */
  readonly charset: string;
  /** The default collation of the database. */
  readonly collation: string;
  /** `lower_case_table_names` is not 0: table names are stored or compared in lower case. */
  readonly foldsTableNames: boolean;
  /** The connection id. A different one later means that a proxy shares sessions. */
  readonly id: number;
}

export interface ServerSession extends Session {
  readonly serverInfo: ServerInfo;
}

/** Connects, applies the session settings and checks the server. */
export async function openSession(variant: Variant, address: Address, settings: Settings): Promise<ServerSession> {
  const driver = await variant.open(address, settings).catch((error) => {
    throw withNothingChanged(toConnectError(error));
  });
  let lost: Error | undefined;
  driver.onLost((error) => {
    lost ??= error;
  });
  const abandon = (error: Error): void => {
    lost ??= error;
    driver.abandon(error);
  };
  const send: ExecSql = async (text, timeoutMs) => {
    if (lost) throw lost;
    return abandonAfter(timeoutMs, driver.query(text), abandon);
  };
  const opened: ExecSql = (text, timeoutMs) =>
    send(text, timeoutMs).catch((error) => {
      throw toSessionError(error);
    });
  const queue = new SerialQueue();
  try {
    const query =
      'SELECT version() AS version, database() AS name, connection_id() AS id, @@character_set_database AS charset, @@collation_database AS collation, @@lower_case_table_names AS folds, @@explicit_defaults_for_timestamp AS explicit';
    const [row] = await rowsOf(send, `${sessionSetupSql(settings, 1)}; ${query}`);
    const serverInfo = {
      version: String(row?.version),
      database: String(row?.name),
      id: Number(row?.id),
      charset: String(row?.charset),
      collation: String(row?.collation),
      foldsTableNames: Number(row?.folds) !== 0,
    };
    assertServer(variant, serverInfo.version);
    if (Number(row?.explicit) === 0) await disableImplicitTimestamps(send, variant.title);
    return {
      serverInfo,
      exec: (text, timeoutMs) => queue.run(() => opened(text, timeoutMs)),
      exclusive: (work) => queue.run(() => work(opened)),
      close: async () => driver.close(),
    };
  } catch (error) {
    driver.close();
    throw withNothingChanged(toSvcError(error));
  }
}

function assertServer(variant: Variant, version: string): void {
  if (!variant.matchesVersion(version)) {
    const { other } = variant;
    throw new SvcError('config_invalid', `The server is not ${variant.title} but ${other.title}.`, {
      why: `Its version is ${version}.`,
      next: [`Set dialect: '${other.name}' in svc.config.`],
    });
  }
  if (!isBefore(parseVersion(version), variant.minimumVersion)) return;
  throw new SvcError('not_supported', `This ${variant.title} server is too old.`, {
    why: `It has version ${version}; ${variant.minimumVersion.join('.')} is the oldest supported version.`,
    next: ['Use a newer server.'],
  });
}

/** Otherwise the server adds a default and ON UPDATE to a required timestamp, as MariaDB does before 10.10. */
async function disableImplicitTimestamps(exec: ExecSql, title: string): Promise<void> {
  try {
    await exec('SET SESSION explicit_defaults_for_timestamp = 1');
  } catch (error) {
    // In older servers it is a startup option, and in MySQL only administrators can set it.
    const cause = toSvcError(error);
    if (!isSvcError(cause) || cause.code === 'connection_lost') throw error;
    throw new SvcError('not_supported', `This ${title} server changes required timestamps on every update.`, {
      why: `Its explicit_defaults_for_timestamp is OFF, and the session cannot set it: ${cause.why}`,
      next: ['Set explicit_defaults_for_timestamp = ON in the configuration of the server.'],
      cause,
    });
  }
}
