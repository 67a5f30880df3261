import type { Connection, RunOutcome, Segment, Statement, UpdateJob, UpdateResult } from '../../core/dialect.ts';
import { SvcError } from '../../core/errors.ts';
import type { AnyRecordDefinition, RecordWrite } from '../../core/records.ts';
import type { KeptRun } from './kept/compile.ts';
import { type KeptGrammar, keptGrammar } from './kept/grammar.ts';
import { readKept } from './kept/read.ts';
import { type KeptWords, seenKept } from './kept/words.ts';
import { isLeased, LEASES, leased } from './lease.ts';
import { type RecordHome, recordStore, recordTable, VERSION } from './record-store.ts';
import { columnOf, engineColumns, writeLost, writesElapsed, writtenValues } from './record-write.ts';
import { type Exec, rowsOf } from './session.ts';
import { updateParts } from './update.ts';
import { recordValue } from './value.ts';

/**
 * What an engine has to say for `sqlConnection` to do the rest: one whose DDL can be rolled back, that knows
 * IS DISTINCT FROM and RETURNING, and whose statements are those of `compileKept`.
 */
export interface SqlEngine extends Pick<Connection, 'close'> {
  /** What answers, for people, with its version. */
  readonly server: string;
  /** Runs one statement by itself. Many are asked for at once, also while a transaction runs: they wait for their turn. */
  readonly exec: Exec;
  /**
   * Runs `work` in a transaction that no other writer comes into: commits, or rolls back and throws what `work` threw.
   * `rebuilds`: a table is dropped and put back, which may not touch the rows that point at it.
   */
  transaction<T>(work: (exec: Exec) => Promise<T>, rebuilds: boolean): Promise<T>;
  /** Runs a text that may be several statements, inside a transaction that `transaction` began. */
  script(text: string): void | Promise<void>;
  /** Names of the columns of a table, none where it is not there. */
  columns(table: string): Promise<readonly string[]>;
  /** The texts of all tables and indexes that are not the engine's own, as it keeps them. */
  texts(): Promise<readonly string[]>;
  /** The engine's error as an `SvcError`, its words in `why`; what is none of the engine's as it is. */
  refusal(error: unknown): unknown;
  /** A table is not there. */
  isMissing(error: unknown): boolean;
  /** A primary key is there already. */
  isDuplicate(error: unknown): boolean;
}

/** A connection of a dialect over what its engine says. The lock is a lease, so it needs no session of its own. */
export function sqlConnection(words: KeptWords, engine: SqlEngine): Connection {
  const { exec } = engine;
  const grammar = keptGrammar(words);
  const { quote, clock } = grammar;
  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw engine.refusal(error);
    }
  };
  const rows = (text: string) => told(() => rowsOf(exec, text));
  const epochStands = (epoch: number) =>
    `EXISTS (SELECT 1 FROM ${quote(LEASES.collection)} WHERE ${quote('epoch')} = ${epoch})`;
  const home: RecordHome = {
    exec,
    async values(query, columns) {
      return (await rowsOf(exec, query.filled())).map((row) => columns.map((column) => row[column]));
    },
    grammar,
    schema: '',
    isMissing: engine.isMissing,
    isDuplicate: engine.isDuplicate,
    refusal: engine.refusal,
    epochStands,
    write: async (statement) => (await exec(statement.filled())).at(-1)?.count ?? 0,
  };
  const ensureTable = async (definition: AnyRecordDefinition) => {
    const columns = await engine.columns(definition.collection);
    for (const text of recordTable(home.grammar, '', definition, columns)) await exec(text);
  };
  const now = async () =>
    home.grammar.read((await rows(`SELECT ${clock} AS now`))[0]?.now, { type: 'timestamp' }) as Date;
  const kept = async () => readKept(words, await told(() => engine.texts()));
  const connection: Connection = {
    server: engine.server,
    run: (segments, epoch, tookMs) => runSegments({ engine, home }, segments, epoch, tookMs),
    query: rows,
    async introspect(collections) {
      const { model } = await kept();
      return collections ? new Map([...model].filter(([name]) => collections.includes(name))) : model;
    },
    unreadable: async () => (await kept()).unreadable,
    seen: async (model) => seenKept(words, model),
    records: (definition) => recordStore(home, definition),
    ensure: (definitions) =>
      told(async () => {
        for (const definition of definitions) await ensureTable(definition);
      }),
    update: (job) => told(() => update(grammar, exec, job)),
    now,
    async count(collection, limit) {
      const [row] = await rows(
        `SELECT count(*) AS count FROM (SELECT 1 FROM ${quote(collection)} LIMIT ${limit}) AS counted`,
      );
      return Number(row?.count);
    },
    exclusively: (work, options) => leased(connection, work, options),
    isLocked: () => isLeased(connection),
    close: () => engine.close(),
  };
  return connection;
}

async function update(grammar: KeptGrammar, exec: Exec, job: UpdateJob): Promise<UpdateResult> {
  const table = grammar.quote(job.table);
  const { matching, changing, assignments } = updateParts(job, grammar);
  const [row] = await rowsOf(exec, `SELECT count(*) AS matched FROM ${table} WHERE ${matching}`);
  const results = await exec(`UPDATE ${table} SET ${assignments} WHERE (${matching}) AND ${changing}`);
  const modified = results.at(-1)?.count ?? 0;
  // Other sessions may have come in between the two.
  return { matched: Math.max(Number(row?.matched), modified), modified };
}

interface Place {
  readonly engine: SqlEngine;
  readonly home: RecordHome;
}

type Written = RunOutcome['written'][number];

async function runSegments(place: Place, segments: readonly Segment[], epoch: number, tookMs = 0): Promise<RunOutcome> {
  const written: Written[] = [];
  let began = performance.now() - tookMs;
  for (const segment of segments) {
    let at: number | undefined;
    try {
      written.push(
        await place.engine.transaction(
          async (exec) => {
            if (epoch > 0) await assertEpoch(place, exec, epoch);
            for (const [index, statement] of segment.statements.entries()) {
              at = index;
              await perform(place.engine, exec, statement);
            }
            at = undefined;
            const elapsed = String(performance.now() - began);
            const values: Written[number][] = [];
            for (const write of segment.writes) values.push(await writeRecord(place, exec, write, elapsed));
            return values;
          },
          segment.statements.some((one) => runOf(one).rebuilds),
        ),
      );
    } catch (error) {
      const failure = { statement: at, error: place.engine.refusal(error), untouched: true };
      return { committed: written.length, written, failure };
    }
    if (writesElapsed(segment)) began = performance.now();
  }
  return { committed: written.length, written };
}

async function assertEpoch({ home }: Place, exec: Exec, epoch: number): Promise<void> {
  const stands = await rowsOf(exec, `SELECT 1 AS stands WHERE ${home.epochStands(epoch)}`);
  if (stands.length === 0) throw writeLost(undefined);
}

/** What the engine filled in. Throws `lock_lost` where the record is not the one that was read under the lock. */
async function writeRecord(
  { home: { grammar: plain, isDuplicate } }: Place,
  exec: Exec,
  write: RecordWrite,
  elapsed: string,
): Promise<Written[number]> {
  const { definition, record, version } = write;
  const grammar = { ...plain, elapsed };
  const { quote } = grammar;
  const table = quote(definition.collection);
  const names = Object.keys(version === undefined ? definition.columns : record);
  const say = (name: string) => recordValue(grammar, record[name], columnOf(definition, name));
  const returning = `RETURNING ${[quote(definition.key), ...engineColumns(write).map(quote)].join(', ')}`;
  const text =
    version === undefined
      ? `INSERT INTO ${table} (${[...names, VERSION].map(quote).join(', ')}) VALUES (${[...names.map(say), '1'].join(', ')}) ${returning}`
      : `UPDATE ${table} SET ${names.map((name) => `${quote(name)} = ${say(name)}`).join(', ')}, ${quote(VERSION)} = ${version + 1} WHERE ${quote(definition.key)} = ${say(definition.key)} AND ${quote(VERSION)} = ${version} ${returning}`;
  const found = await rowsOf(exec, text).catch((error: unknown) => {
    throw isDuplicate(error) ? writeLost(error) : error;
  });
  const [row] = found;
  if (!row) throw writeLost(undefined);
  return writtenValues(grammar, write, row);
}

/** `compileKept` made it. */
const runOf = ({ run }: Statement): KeptRun => run as unknown as KeptRun;

async function perform(engine: SqlEngine, exec: Exec, statement: Statement): Promise<void> {
  const { texts, must } = runOf(statement);
  for (const text of texts) await engine.script(text);
  for (const query of must) {
    const [broken] = await rowsOf(exec, query);
    if (!broken) continue;
    throw new SvcError('data_violates', 'Rows in the table do not allow the change.', {
      why: String(broken.why),
      next: ['Correct or delete those rows, or leave the change out.'],
    });
  }
}
