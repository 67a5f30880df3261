import { lowerCaseContainsWord } from '../../../../core/match-text.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { type MysqlStatement, newNameIn } from '../compile/step.ts';
import { readReaders } from './read-readers.ts';

/** What a raw statement does to tables that it names, or that it reaches through others. */
export interface RawEffect {
  /** Those that other statements of the run change or read. Undefined if it may be any table. */
  readonly tables: readonly string[] | undefined;
  /** Whether it may replace, change, drop or empty them; otherwise it adds or changes rows. */
  readonly mayChangeTables: boolean;
}

export const unknownEffect = (text: string): RawEffect => ({
  tables: undefined,
  mayChangeTables: MAY_CHANGE_TABLES.test(text),
});

const MAY_CHANGE_TABLES = /\b(alter|call|create|delete|drop|execute|load|rename|truncate)\b/i;

/** Does more than its names say: runs another text, or concerns a whole database. */
const REACHES_ANY = /\b(call|execute|prepare|database|schema|use)\b/;
const CHANGES_SESSION = /(^|;)\s*set\b/;

/**
 * The effect of each raw statement, by its index. A statement reaches what it names: a view or a routine leads to the names in its
 * text, a table to those in the texts of its triggers and to the tables whose foreign keys follow its rows.
 */
export async function readRawEffects(
  exec: ExecSql,
  statements: readonly MysqlStatement[],
): Promise<ReadonlyMap<number, RawEffect>> {
  const effects = new Map<number, RawEffect>();
  if (!statements.some(({ run }) => run.kind === 'raw' && !run.inSchema)) return effects;
  const { texts, neighbors, otherDatabases } = await readReach(exec);
  const ofRun = [...new Set(statements.flatMap(tablesOf))];
  const names = new Set([...texts.keys(), ...ofRun.map((name) => name.toLowerCase())]);
  const effectOf = (text: string, creations: readonly string[]): RawEffect => {
    const reached = [text, ...creations];
    const found = new Set<string>();
    const isUnknown = CHANGES_SESSION.test(text) || otherDatabases.some((name) => lowerCaseContainsWord(text, name));
    for (const one of reached) {
      if (isUnknown || REACHES_ANY.test(one)) return unknownEffect(reached.join(' '));
      for (const name of names) {
        if (found.has(name) || !lowerCaseContainsWord(one, name)) continue;
        found.add(name);
        reached.push(...(texts.get(name) ?? []));
      }
    }
    const mayChangeTables = reached.some((one) => MAY_CHANGE_TABLES.test(one));
    // It may drop a foreign key of one of them.
    const near = mayChangeTables ? neighbors.filter((pair) => pair.some((name) => found.has(name))).flat() : [];
    const concerned = new Set([...found, ...near]);
    return { tables: ofRun.filter((name) => concerned.has(name.toLowerCase())), mayChangeTables };
  };
  /** Texts of objects that the run creates: what they do is added to each later statement. */
  const creations: string[] = [];
  for (const [index, { run, text: original }] of statements.entries()) {
    // The texts of the catalog have the names that tables have now.
    if (run.kind === 'alterTable' && newNameIn(run) !== undefined) break;
    if (run.kind !== 'raw') continue;
    const text = original.toLowerCase();
    if (!run.inSchema) effects.set(index, effectOf(text, creations));
    if (/\bcreate\b/.test(text)) creations.push(text);
  }
  return effects;
}

function tablesOf({ run }: MysqlStatement): string[] {
  if (run.kind === 'raw') return [];
  const violations = run.kind === 'alterTable' || run.kind === 'createTable' ? (run.violations ?? []) : [];
  return [run.table, ...violations.flatMap(({ reads }) => Object.keys(reads))];
}

interface Reach {
  /** By the name of a table, a view, a trigger or a routine: the texts that run or change with it. All in lower case. */
  readonly texts: ReadonlyMap<string, readonly string[]>;
  /** Tables between which there is a foreign key. */
  readonly neighbors: readonly (readonly [string, string])[];
  readonly otherDatabases: readonly string[];
}

async function readReach(exec: ExecSql): Promise<Reach> {
  const namesIn = async (sql: string) => (await rowsOf(exec, sql)).map(({ name }) => String(name).toLowerCase());
  const tables = await namesIn(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type <> 'VIEW'`,
  );
  const otherDatabases = await namesIn(
    'SELECT schema_name AS name FROM information_schema.schemata WHERE schema_name <> DATABASE()',
  );
  const keys = await rowsOf(
    exec,
    `SELECT LOWER(table_name) AS child, LOWER(referenced_table_name) AS parent,
  delete_rule LIKE 'SET%' OR update_rule LIKE 'SET%' OR delete_rule = 'CASCADE' OR update_rule = 'CASCADE' AS follows
  FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()`,
  );
  const texts = new Map<string, string[]>(tables.map((name) => [name, []]));
  const addText = (name: string, text: string) => {
    const known = texts.get(name);
    if (known) known.push(text);
    else texts.set(name, [text]);
  };
  for (const { name, text, table } of await readReaders(exec)) {
    // A user without the privilege to read a routine gets no text.
    const known = text === '' ? 'call' : text;
    addText(name.toLowerCase(), `${known} ${table?.toLowerCase() ?? ''}`);
    if (table !== undefined) addText(table.toLowerCase(), known);
  }
  const neighbors = keys.map(({ parent, child }) => [String(parent), String(child)] as const);
  for (const [index, [parent, child]] of neighbors.entries()) {
    if (Number(keys[index]?.follows) === 1) addText(parent, child);
  }
  return { texts, neighbors, otherDatabases };
}
