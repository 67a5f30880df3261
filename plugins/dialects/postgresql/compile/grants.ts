import { SvcError } from '../../../../core/errors.ts';
import { objectKey } from '../../../../core/schema/database-object.ts';
import type { ObjectName } from '../../sql/objects.ts';
import { pathIn } from './names.ts';
import { withoutParameters } from './routine-signature.ts';

type Words = readonly string[];

interface Clauses {
  readonly privileges: Words;
  readonly target: Words;
  readonly roles: Words;
  /** From `WITH` on. */
  readonly tail: string;
}

interface Grant {
  readonly undo: string;
  /** Those that the server must have. */
  readonly roles: readonly string[];
}

/** What the name of the object begins with, by the word before the path. */
const PREFIXES: Readonly<Record<string, string>> = {
  table: '',
  sequence: '',
  function: 'function ',
  procedure: 'function ',
  routine: 'function ',
  type: 'type ',
  domain: 'type ',
  schema: 'schema ',
};

/** The name of the object with the privileges of another, without arguments; undefined if nobody can have any on it. */
export function grantsName({ kind, name }: ObjectName): string | undefined {
  if (/^(?:.*view|sequence|partition|inherited_table)$/.test(kind)) return name;
  const prefix = PREFIXES[kind === 'aggregate' ? 'routine' : kind];
  return prefix && `${prefix}${withoutParameters(name)}`;
}

const KEYWORDS: ReadonlySet<string> = new Set([',', 'group', 'public']);

/** What ALL means, by the word before the path. MAINTAIN is one of a table since PostgreSQL 17. */
const ALL: Readonly<Record<string, readonly string[]>> = {
  table: ['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger', 'maintain'],
  sequence: ['usage', 'select', 'update'],
  function: ['execute'],
  procedure: ['execute'],
  routine: ['execute'],
  type: ['usage'],
  domain: ['usage'],
  schema: ['usage', 'create'],
};

const ALL_OF_COLUMNS = ['select', 'insert', 'update', 'references'];

/** The parts of a GRANT or a REVOKE; undefined for any other statement. */
function clausesOf(words: Words): Clauses | undefined {
  const isGrant = words[0] === 'grant';
  const [on, to] = [words.indexOf('on'), words.lastIndexOf(isGrant ? 'to' : 'from')];
  if ((!isGrant && words[0] !== 'revoke') || on < 0 || to < on) return undefined;
  const option = words.lastIndexOf('with');
  const end = option > to ? option : words.length;
  return {
    privileges: words.slice(1, on),
    target: words.slice(on + 1, to),
    roles: words.slice(to + 1, end),
    tail: words.slice(end).join(' '),
  };
}

/** A GRANT or a REVOKE on what the object is named after. Throws `migration_invalid` for another statement. */
export function grantOf(object: ObjectName, { text, words }: { readonly text: string; readonly words: Words }): Grant {
  const clauses = clausesOf(words);
  if (!clauses || !isAbout(object, clauses.target) || !canBeTakenBack(words, clauses))
    throw new SvcError('migration_invalid', `A statement of "${objectKey(object)}" is not one that belongs there.`, {
      why: `It is about something else, or svc does not know how to take it back: ${text.slice(0, 200)}`,
      next: [
        'Write GRANT … ON … TO … [WITH GRANT OPTION] and REVOKE … ON … FROM PUBLIC, on what the file is named after.',
      ],
    });
  const [privileges, target, roles] = [clauses.privileges, clauses.target, clauses.roles].map((one) => one.join(' '));
  const undo =
    words[0] === 'grant'
      ? `REVOKE ${privileges} ON ${target} FROM ${roles}`
      : `GRANT ${privileges} ON ${target} TO ${roles}`;
  return { undo, roles: clauses.roles.filter((role) => !KEYWORDS.has(role)).map(pathIn) };
}

function isAbout({ name }: ObjectName, target: Words): boolean {
  const prefix = PREFIXES[target[0] ?? ''];
  const named = `${prefix ?? ''}${pathIn(target[prefix === undefined ? 0 : 1] ?? '')}`;
  const isOne = target.length === (prefix === undefined ? 1 : 2) || (prefix === 'function ' && target.at(-1) === ')');
  return isOne && (named === name || name.startsWith(`${named}(`));
}

/** A role that lacks what is revoked would be given it: of PUBLIC alone it is known what it has from the beginning. */
function canBeTakenBack(words: Words, { privileges, roles, tail }: Clauses): boolean {
  if (/^(?:grant option|admin)/.test(privileges.join(' ')) || roles.includes('cascade')) return false;
  if (words[0] === 'revoke') return roles.join() === 'public' && tail === '';
  return !roles.some((role) => /^(?:current|session)_/.test(role)) && /^(?:with grant option)?$/.test(tail);
}

/** Whether two texts about one thing give the same privileges, in whatever statements. `found` is from the catalog. */
export function sameGrants(written: readonly Words[], found: readonly Words[]): boolean {
  const there = new Set(found.flatMap(eachPrivilege));
  const isKnown = (one: string): boolean => there.has(one) || !one.includes(' maintain ');
  const asked = new Set(written.flatMap(eachPrivilege).filter(isKnown));
  return asked.size === there.size && [...asked].every((one) => there.has(one));
}

/** One text for each privilege, column and role. */
function eachPrivilege(words: Words): readonly string[] {
  const { privileges = [], target = [], roles = [], tail } = clausesOf(words) ?? {};
  const all = ALL[PREFIXES[target[0] ?? ''] === undefined ? 'table' : (target[0] ?? '')] ?? [];
  return listed(privileges).flatMap(([privilege = '', ...rest]) => {
    const columns = listed(rest.filter((word) => !/^(?:privileges|\(|\))$/.test(word))).map(([column = '']) =>
      pathIn(column),
    );
    const names = privilege !== 'all' ? [privilege] : columns.length > 0 ? ALL_OF_COLUMNS : all;
    return names.flatMap((name) =>
      (columns.length === 0 ? [''] : columns).flatMap((column) =>
        listed(roles).map((role) => [words[0], name, column, pathIn(role.at(-1) ?? ''), tail].join(' ')),
      ),
    );
  });
}

/** The words between commas that are in no parentheses. */
function listed(words: Words): readonly Words[] {
  const items: string[][] = [];
  let depth = 0;
  for (const word of words) {
    if (word === '(') depth += 1;
    if (word === ')') depth -= 1;
    if (word === ',' && depth === 0) items.push([]);
    else if (items.length === 0) items.push([word]);
    else items.at(-1)?.push(word);
  }
  return items;
}
