import type { Connection } from '../../../core/dialect.ts';
import { recordStore } from '../../sql/record-store.ts';
import { type Exec, type Result, rowsOf } from '../../sql/session.ts';
import { resolved } from '../../sql/text.ts';
import { Turns } from '../../sql/turns.ts';
import { addressOf } from './address.ts';
import { readBeside } from './beside.ts';
import { withNamesNow } from './carried.ts';
import { readCatalog } from './catalog.ts';
import { everyText, holdingEveryText } from './charset.ts';
import { refusal } from './errors.ts';
import type { Flavour } from './flavour.ts';
import { foresee } from './foresee.ts';
import { grammarOf } from './grammar.ts';
import { readTables } from './introspect.ts';
import { exclusively, lockHeld, lockTaken } from './lock.ts';
import { quote } from './quote.ts';
import { known, knownSegments } from './random.ts';
import { ensureTables, recordGrammarOf, recordHome } from './records.ts';
import { type Asking, quickText, runAsked } from './resolve.ts';
import { type RunPlace, runSegments } from './run.ts';
import { seen } from './seen.ts';
import { openSession } from './session.ts';
import { type Settings, sessionText } from './settings.ts';
import { spelled } from './spelled.ts';
import { textsOf } from './texts.ts';
import { updateTexts } from './update.ts';
import { versionOf } from './version.ts';

export async function connect(flavour: Flavour, url: string, settings: Settings): Promise<Connection> {
  const { traits } = flavour;
  const session = await openSession(flavour, addressOf(url, flavour.schemes), settings);
  const { greeting } = session;
  const version = versionOf(greeting.version);
  const grammar = grammarOf(traits);
  const recordGrammar = recordGrammarOf(flavour);
  const home = recordHome(session, recordGrammar, settings.lockRetries);
  const asking = (exec: Exec): Asking => ({
    exec,
    traits,
    version,
    allowCopy: settings.allowCopy,
    foldsTables: greeting.foldsTables,
  });
  const place: RunPlace = {
    session,
    grammar: recordGrammar,
    restore: (autocommit) => `USE ${quote(greeting.database)}; ${sessionText(settings, autocommit)}`,
    lockHeld: lockHeld(greeting.database),
    lockRetries: settings.lockRetries,
    textOf: (run) => resolved(run, '') ?? quickText(run),
    block: traits.block,
    ask: (exec, run, sent) => runAsked(asking(exec), run, sent),
  };
  const tail = everyText(greeting.charset, traits.collation);
  const holdingAll = holdingEveryText(tail);
  const ofServer = known({ traits, version });
  const lockPlace = { session, greeting, turns: new Turns() };
  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw refusal(error);
    }
  };
  const rows = (text: string): Promise<Result['rows']> => told(() => rowsOf(session.exec, text));
  const read = (collections?: readonly string[]) =>
    told(async () => readTables(traits, await readCatalog(session.exec, traits, collections)));
  return {
    server: `${flavour.title} ${version.join('.')}`,
    run(segments, epoch, tookMs, underway) {
      const ours = knownSegments({ traits, version }, segments, underway);
      return runSegments(place, holdingAll(ours), epoch, tookMs, underway);
    },
    foresee: (statements) => told(() => session.alone((exec) => foresee(asking(exec), ofServer(statements)))),
    texts: (statements) => told(() => textsOf(session.exec, traits, ofServer(statements))),
    query: rows,
    introspect: async (collections) => (await read(collections)).model,
    async unreadable() {
      const { unreadable } = await read();
      return [...unreadable, ...(await told(() => readBeside(session.exec)))];
    },
    seen: (model) =>
      told(async () =>
        withNamesNow(session.exec, traits, await spelled({ session, traits, grammar, tail }, seen(model))),
      ),
    records: (definition) => recordStore(home, definition),
    ensure: (definitions) => ensureTables(session, recordGrammar, definitions),
    async update(job) {
      const { count, update } = updateTexts({ grammar, traits, version }, job);
      const [counted, changed] = await told(() => session.exec(`${count}; ${update}`));
      const modified = changed?.count ?? 0;
      // Counted on one snapshot, changed on a newer one: other sessions may have come in between.
      return { matched: Math.max(Number(counted?.rows[0]?.matched), modified), modified };
    },
    async now() {
      const [row] = await rows('SELECT SYSDATE(3) AS now');
      return new Date(`${String(row?.now).replace(' ', 'T')}Z`);
    },
    async count(collection, limit) {
      const [row] = await rows(
        `SELECT COUNT(*) AS count FROM (SELECT 1 FROM ${quote(collection)} LIMIT ${limit}) AS counted`,
      );
      return Number(row?.count);
    },
    exclusively: (work, options) => exclusively(lockPlace, work, options),
    isLocked: async () => (await rows(`SELECT 1 FROM DUAL WHERE ${lockTaken(greeting.database)}`)).length > 0,
    close: () => session.close(),
  };
}
