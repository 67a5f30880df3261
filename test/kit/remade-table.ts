import type { RemadeCases } from './remade-cases.ts';
import type { Remade, RemadeOutcome } from './remake-files.ts';

/** The classes of the cases, by the first word of their names. */
const CLASSES: Readonly<Record<string, string>> = {
  'Types of fields':
    'type wide numeric char timestamptz bit interval daterange multirange box circle line lseg path macaddr8 pg jsonpath name regproc regtype xid txid time timetz geometry',
  Defaults: 'default on',
  'Collations and character sets': 'collation charset',
  'Identities, serials and sequences': 'identity serial bigserial smallserial sequence sequenced auto',
  'Computed fields': 'computed',
  'Primary keys, and tables without one': 'key no',
  'Unique and exclusion constraints': 'unique exclude',
  Checks: 'check',
  'Foreign keys': 'foreign',
  Indexes: 'index',
  'Settings of tables and fields':
    'settings table column has row stats engine invisible unlogged fillfactor autovacuum replica compression clustered storage statistics',
  Comments: 'comment',
  'Partitioned tables': 'partition partitioned',
  'Inheritance and typed tables': 'inherit inherits typed',
  'System-versioned tables': 'versioned',
  'Enums, domains, composite and range types': 'enum domain composite range',
  'Views, materialized views and rules': 'view materialized rule',
  'Functions, aggregates, procedures, triggers and events': 'function aggregate routine trigger event',
  'Policies and privileges': 'policy granted',
  'Unusual names, and many rows': 'quoted mixed names many',
  'What uses objects that come later': 'late',
  'What uses objects of another schema': 'other',
  'Whole schemas, with rows': 'forum shop billing queue',
};

const classOf = new Map(
  Object.entries(CLASSES).flatMap(([title, words]) => words.split(' ').map((word) => [word, title] as const)),
);

/** From the best to the worst: a case has the worst outcome of its tables and objects. */
const OUTCOMES: readonly RemadeOutcome[] = ['same', 'refused', 'different', 'silent'];

/** What the tables on the page begin with. */
export const REMADE_HEAD = [
  'class of feature',
  'engine',
  'same',
  'refused with a reason',
  'different',
  'silent',
] as const;
export const REASONS_HEAD = ['case', 'engine', 'outcome', 'what `pull` says'] as const;
/** What all cases of an engine have in common, such as a type, and the sum of the cases. */
const SHARED = 'What the cases share';
const ALL = 'All';

/** In the order of the page. */
export const REMADE_CLASSES: readonly string[] = [...Object.keys(CLASSES), SHARED, ALL];

interface RemadeRows {
  readonly counts: readonly (readonly string[])[];
  readonly reasons: readonly (readonly string[])[];
}

/** The rows of an engine: how many cases of each class had which outcome, and the reason of each that is not the same. */
export function remadeRows(engine: string, cases: RemadeCases, { outcomes, reasons }: Remade): RemadeRows {
  const longestFirst = Object.keys(cases).sort((a, b) => b.length - a.length);
  const found = new Map<string, string[]>();
  for (const name of outcomes.keys()) {
    const owner = longestFirst.find(
      (one) => name === one || (name.startsWith(one) && /\W|_/.test(name.charAt(one.length))),
    );
    found.set(owner ?? SHARED, [...(found.get(owner ?? SHARED) ?? []), name]);
  }
  const unmade = longestFirst.filter((name) => !found.has(name));
  if (unmade.length > 0) throw new Error(`No table or object is named like these cases: ${unmade.join(', ')}`);

  const counts = new Map(REMADE_CLASSES.map((title) => [title, OUTCOMES.map(() => 0)]));
  const why: string[][] = [];
  for (const [name, members] of found) {
    const worst = Math.max(...members.map((member) => OUTCOMES.indexOf(outcomes.get(member) ?? 'silent')));
    for (const title of name === SHARED ? [SHARED] : [titleOf(name), ALL]) {
      const row = counts.get(title) ?? [];
      row[worst] = (row[worst] ?? 0) + 1;
    }
    const said = new Set(members.flatMap((member) => reasons.get(member) ?? []));
    if (worst > 0)
      why.push([`\`${name}\``, engine, OUTCOMES[worst] ?? '', [...said].sort().join(' ').replaceAll('|', '\\|')]);
  }
  return {
    counts: [...counts]
      .filter(([, row]) => row.some((count) => count > 0))
      .map(([title, row]) => [title, engine, ...row.map(String)]),
    reasons: why.sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
  };
}

function titleOf(name: string): string {
  const title = classOf.get(name.split('_')[0] ?? '');
  if (title === undefined) throw new Error(`The case ${name} has no class: add its first word to CLASSES`);
  return title;
}

export const remadeLine = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

/** As the page names the engines. An embedded database has the rows of its server. */
export const ENGINE_TITLES: Readonly<Record<string, string>> = {
  postgresql: 'PostgreSQL',
  pglite: 'PostgreSQL',
  mysql: 'MySQL',
  mariadb: 'MariaDB',
};
