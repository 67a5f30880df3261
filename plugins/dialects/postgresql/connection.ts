import type { Connection } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { meta } from '../../../core/migration/history.ts';
import { outwait } from '../../sql/outwait.ts';
import { recordStore } from '../../sql/record-store.ts';
import { type Result, rowsOf, type Session } from '../../sql/session.ts';
import type { Turns } from '../../sql/turns.ts';
import { readBeside } from './beside.ts';
import { DOLLARS } from './block.ts';
import { readCatalog } from './catalog.ts';
import { codeOf, isPassing, LOCK_NOT_HAD, pooled, refusal, unchanged } from './errors.ts';
import { quote } from './grammar.ts';
import { readTables } from './introspect.ts';
import { text } from './literal.ts';
import { exclusively, type LockPlace, lockTaken } from './lock.ts';
import { channel, ensureTables, recordHome } from './records.ts';
import { runSegments } from './run.ts';
import { seen } from './seen.ts';
import { PATIENT, type Settings } from './settings.ts';
import { spelled } from './spelled.ts';
import { INCOMPARABLE, updateText } from './update.ts';

export interface Opened {
  readonly session: Session;
  readonly settings: Settings;
  readonly turns: Turns;
  /** Puts the settings of the session back to what it was opened with. */
  readonly restore: string;
  watch(channel: string, hint: (key?: string) => void): Promise<() => Promise<void>>;
}

/** A connection over a session that has begun, whoever serves it. */
export async function connectionOver({ session, settings, turns, restore, watch }: Opened): Promise<Connection> {
  const { name, backend, exists, version, alive } = await greet(session, settings);
  const schema = `${quote(name)}.`;
  const place: LockPlace = { session, schema, backend, turns, missingSchema: exists ? undefined : quote(name) };
  const restored = `${restore}; SELECT ${PATIENT}${alive ? `, ${CHECK_CLIENT}` : ''}`;
  const runPlace = { session, schema, settings, restore: restored };
  const home = recordHome(session, schema, settings.lockRetries);
  const rows = async (text: string): Promise<Result['rows']> => {
    try {
      return await rowsOf(session.exec, text);
    } catch (error) {
      throw refusal(error);
    }
  };
  const read = async (collections?: readonly string[]) => {
    try {
      return readTables(await readCatalog(session.exec, name, collections));
    } catch (error) {
      throw refusal(error);
    }
  };
  return {
    server: `PostgreSQL ${Math.floor(version / 10000)}.${version % 10000}`,
    ...(settings.schema !== undefined && {
      preamble: [
        ...(exists ? [] : [`CREATE SCHEMA IF NOT EXISTS ${quote(name)}`]),
        `SET search_path TO ${quote(name)}`,
      ],
    }),
    run: (segments, epoch, tookMs, underway) => runSegments(runPlace, segments, epoch, tookMs, underway),
    query: rows,
    introspect: async (collections) => (await read(collections)).model,
    async unreadable() {
      const { unreadable } = await read();
      try {
        return [...unreadable, ...(await readBeside(session.exec, name))];
      } catch (error) {
        throw refusal(error);
      }
    },
    async seen(model) {
      try {
        return await spelled(session, seen(model));
      } catch (error) {
        throw refusal(error);
      }
    },
    records: (definition) => recordStore(home, definition),
    ensure: (definitions) => ensureTables(session, schema, definitions),
    async update(job) {
      const [row] = await updated(session, updateText(job, schema), settings.lockRetries);
      const modified = Number(row?.modified);
      // Counted on one snapshot, changed on a newer one: other sessions may have come in between.
      return { matched: Math.max(Number(row?.matched), modified), modified };
    },
    async now() {
      const [row] = await rows('SELECT clock_timestamp() AS now');
      return new Date(row?.now as Date | string);
    },
    async count(collection, limit) {
      const [row] = await rows(
        `SELECT count(*) AS count FROM (SELECT 1 FROM ${schema}${quote(collection)} LIMIT ${limit}) AS counted`,
      );
      return Number(row?.count);
    },
    watch: (topic, hint) => watch(channel(schema, topic), hint),
    exclusively: (work, options) => exclusively(place, work, options),
    isLocked: async () => (await rows(`SELECT 1 FROM ${lockTaken(schema)}`)).length > 0,
    close: () => session.close(),
  };
}

/** A row that is waited for keeps nobody out of the table: other than a change of the schema, an update may have patience. */
const ROW_LOCK = '60s';

async function updated(session: Session, text: string, retries: number): Promise<Result['rows']> {
  const isCrossed = (error: unknown) => isPassing(error) && codeOf(error) !== LOCK_NOT_HAD;
  try {
    return await outwait(
      () => rowsOf(session.exec, `SET LOCAL lock_timeout = '${ROW_LOCK}'; ${text}`),
      isCrossed,
      retries,
    );
  } catch (error) {
    if (codeOf(error) === INCOMPARABLE) throw incomparable(error as Error);
    throw isPassing(error) ? unchanged(refusal(error)) : refusal(error);
  }
}

function incomparable(error: Error): SvcError {
  return new SvcError('not_supported', 'A field has a type of the server whose values svc cannot compare.', {
    why: `${INCOMPARABLE}: ${error.message}`,
    state: 'Nothing was changed.',
    next: ['Say it in the words of the server: raw.'],
    cause: error,
  });
}

interface Greeting {
  readonly name: string;
  readonly backend: number;
  readonly exists: boolean;
  /** As `server_version_num` has it. */
  readonly version: number;
  /** The server watches whether its client is alive. */
  readonly alive: boolean;
}

const OLDEST = 120000;
/** One of the settings of the startup packet, and what no server has of itself. */
const LEVEL = "current_setting('client_min_messages')";
const LEVEL_SET = 'warning';
/** The schema of the search_path that svc has lived in. */
const HOME = `(SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(${text(meta.collection)}))`;
/** The backend of a client that died stops within this time, and with it the lock is free. */
const CHECK_CLIENT = "set_config('client_connection_check_interval', '200ms', false)";

async function greet(session: Session, { schema }: Settings): Promise<Greeting> {
  const version = "current_setting('server_version_num')::int";
  const exists = schema === undefined ? 'true' : `to_regnamespace(${text(quote(schema))}) IS NOT NULL`;
  const ask = (alive: string) =>
    rowsOf(
      session.exec,
      `SELECT current_schema() AS name, pg_backend_pid() AS backend, ${version} AS version, ${exists} AS exists, ${HOME} AS home, ${LEVEL} AS level, ${PATIENT} AS patient${alive}`,
    );
  const rows = await ask(`, CASE WHEN ${version} >= 140000 THEN ${CHECK_CLIENT} END AS alive`)
    // Some platforms cannot watch a client.
    .catch((error) => (codeOf(error) === '22023' ? ask('') : Promise.reject(error)))
    .catch((error) => {
      throw refusal(error);
    });
  const row = rows[0];
  if (row?.level !== LEVEL_SET) throw pooled('It does not hand on the settings that the connection asks for.');
  if (Number(row?.version) < OLDEST) {
    throw new SvcError('not_supported', 'This PostgreSQL server is too old.', {
      why: `It has version ${Math.floor(Number(row?.version) / 10000)}; 12 is the oldest that svc knows.`,
    });
  }
  const current = row?.name;
  const name = schema ?? (typeof current === 'string' ? current : undefined);
  if (name === undefined) {
    throw new SvcError('config_invalid', 'The database user has no schema to put tables into.', {
      why: 'No schema of its search_path exists.',
      next: ["Say which: schema: 'public' beside the URL in svc.config."],
    });
  }
  if (name.includes(DOLLARS)) {
    throw new SvcError('config_invalid', `The schema "${name}" cannot be used.`, {
      why: `Its name has ${DOLLARS} in it, which svc puts around blocks of PL/pgSQL.`,
      state: 'Nothing was changed.',
      next: ['Another schema, or rename this one: ALTER SCHEMA … RENAME TO …'],
    });
  }
  const home = row?.home;
  if (schema === undefined && typeof home === 'string' && home !== name) throw moved(home, name);
  return {
    name,
    backend: Number(row?.backend),
    exists: row?.exists === true,
    version: Number(row?.version),
    alive: typeof row?.alive === 'string',
  };
}

/** Taken for an empty database it would get every migration once more, and its new tables would hide the real ones. */
function moved(home: string, name: string): SvcError {
  return new SvcError(
    'config_invalid',
    `The tables of svc are in the schema "${home}", and new ones would go into "${name}".`,
    {
      why: `The search_path names both, "${name}" first.`,
      state: 'Nothing was changed.',
      next: [
        `Say which is meant beside the URL in svc.config: schema: '${home}' for what is there, schema: '${name}' to begin anew.`,
      ],
    },
  );
}
