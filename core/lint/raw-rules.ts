import { wouldDestroyData } from '../migration/raw-effect.ts';
import { allowsLoss } from './existing-tables.ts';
import type { LintMatch, LintRule, LintStep } from './rule.ts';
import { alterClauses, createdTables, matching, plainName, SQL_NAME } from './sql-text.ts';

/** Raw statements, on any engine. */
export const rawRules: readonly LintRule[] = [
  {
    id: 'SVC501',
    name: 'raw-destroys-data',
    level: 'error',
    summary: 'A raw statement drops, truncates or deletes.',
    impact: 'Rows are gone, and a rollback cannot bring them back.',
    fix: 'Use the operation for it, which says what is lost; or set "destructive": false if the statement destroys nothing, or "allow": ["destructive"] in the migration.',
    check: (step) => {
      const { operation } = step;
      if (!isRaw(step) || operation.type !== 'raw' || allowsLoss(step)) return [];
      // Rules of their own name the table.
      const isKnown =
        matching(step.sql, new RegExp(`^drop (?:table|database|schema|keyspace) (?:if exists )?(${SQL_NAME})`, 'i'))
          .length > 0 ||
        alterClauses(step.sql).some(({ clause }) => /^drop (?:column )/i.test(clause)) ||
        step.sql.some(({ text }) => WHOLE_TABLE.some((pattern) => pattern.test(text)));
      return !isKnown && (operation.destructive ?? wouldDestroyData(operation.statement))
        ? [{ message: 'A raw statement destroys data.' }]
        : [];
    },
  },
  {
    id: 'SVC502',
    name: 'cascade',
    level: 'error',
    summary: 'A statement also drops or empties what depends on something, without naming it.',
    impact: 'Views, keys, functions or the rows of other tables go with it, and nobody has seen which.',
    fix: 'Name each of them, in statements or operations of their own.',
    check: ({ sql, operation }) => [
      ...matching(sql, /^(?:drop|truncate)\b.* cascade$/i).map(({ text }) => ({
        message: `"${shorten(text)}" drops or empties more than it names.`,
      })),
      ...alterClauses(sql).flatMap(({ table, clause }) =>
        /^drop\b.* cascade$/i.test(clause)
          ? [{ table, message: `"${shorten(clause)}" drops more than it names.` }]
          : [],
      ),
      ...(operation.type === 'dropCollection' && operation.cascade
        ? [
            {
              table: operation.collection,
              message: `The foreign keys that reference "${operation.collection}" are dropped with it.`,
            },
          ]
        : []),
    ],
  },
  {
    id: 'SVC503',
    name: 'raw-not-resumable',
    level: 'warning',
    summary: 'A raw statement outside of a transaction has no "check".',
    impact:
      'After an interruption nobody knows whether it took effect: the next run stops, and a person has to decide.',
    fix: 'Add "check": a query that returns a row once the statement has taken effect.',
    check: (step) => {
      const { operation, transactionalDdl } = step;
      if (!isRaw(step) || operation.type !== 'raw' || operation.check !== undefined || operation.makes !== undefined)
        return [];
      return !transactionalDdl || operation.transaction === false
        ? [{ message: 'A raw statement that is not in a transaction has no "check".' }]
        : [];
    },
  },
  {
    id: 'SVC504',
    name: 'raw-unknown-to-model',
    level: 'note',
    summary: 'A raw statement makes or changes a table without saying so.',
    impact: 'svc does not know the table: "check" reports a difference, and later migrations cannot refer to it.',
    fix: 'Use the operation for it, or describe what it makes in "makes".',
    check: ({ sql, operation }) =>
      operation.type === 'raw' && operation.makes === undefined
        ? [...createdTables(sql), ...alterClauses(sql).filter(({ clause }) => CHANGES_MODEL.test(clause))]
            .slice(0, 1)
            .map(({ table }) => ({
              table,
              message: `"${table}" is made or changed without "makes".`,
            }))
        : [],
  },
  {
    id: 'SVC505',
    name: 'broad-grant',
    level: 'warning',
    summary: 'A statement grants more than one person or program can need.',
    impact: 'Everybody who can connect, or the application itself, can read or change what it should not.',
    fix: 'Grant the privileges that are needed, on the tables that are needed, to a role of its own.',
    check: ({ sql }) =>
      matching(
        sql,
        /^grant\b(?=.*\b(?:all(?: privileges)?\b.* on|to public\b|with grant option\b|superuser\b))|^alter (?:role|user)\b.*\bsuperuser\b/i,
      )
        .filter(({ text }) => !/\bnosuperuser\b/i.test(text))
        .map(({ text }) => ({ message: `"${shorten(text)}" grants more than it needs to.` })),
  },
  {
    id: 'SVC507',
    name: 'checks-disabled',
    level: 'error',
    summary: 'A statement turns off triggers, foreign keys or a setting of the whole server.',
    impact: 'Rows that break the rules get in and stay, or other applications of the server are affected.',
    fix: 'Leave the checks on; insert in the order of the keys. Change settings of the server outside of migrations.',
    check: ({ sql }) => [
      ...matching(
        sql,
        /^(?:set (?:session |local )?session_replication_role\b|set (?:session |@@session\.|@@)?(?:foreign_key_checks|unique_checks) ?= ?(?:0|off)|alter system\b|set (?:global |persist |@@global\.))/i,
      ).map(({ text }) => ({ message: `"${shorten(text)}" turns off checks or changes the server.` })),
      ...alterClauses(sql).flatMap(({ table, clause }) =>
        /^disable (?:trigger|rule|keys)\b/i.test(clause)
          ? [{ table, message: `"${shorten(clause)}" on "${table}".` }]
          : [],
      ),
    ],
  },
  {
    id: 'SVC119',
    name: 'unbounded-write',
    level: 'error',
    summary: 'One statement updates or deletes all rows of a table.',
    impact:
      'It holds the locks of all rows until it ends, fills the log, and delays replicas; writes to those rows wait.',
    fix: 'Use db.update, which works in batches and resumes; or write a WHERE that selects a part.',
    scalesWithRows: true,
    check: (step) =>
      step.sql.flatMap(({ text }): readonly LintMatch[] => {
        for (const pattern of WHOLE_TABLE) {
          const [, written] = pattern.exec(text) ?? [];
          if (written === undefined) continue;
          const table = plainName(written);
          return step.isNew(table) ? [] : [{ table, message: `"${shorten(text)}" changes all rows of "${table}".` }];
        }
        return [];
      }),
  },
];

/** Without a WHERE or a LIMIT. */
const WHOLE_TABLE = [
  new RegExp(`^truncate (?:table )?(?:only )?(${SQL_NAME})`, 'i'),
  new RegExp(`^delete from (?:only )?(${SQL_NAME})(?!.*\\b(?:where|limit)\\b)`, 'i'),
  new RegExp(
    `^update (?:only |low_priority |ignore )?(${SQL_NAME})(?: (?:as )?\\w+)? set (?!.*\\b(?:where|limit)\\b)`,
    'i',
  ),
];

/** What a table consists of; options of it, owners and the like do not count. */
const CHANGES_MODEL = /^(?:add|drop|alter|modify|change|rename)\b/i;

const isRaw = ({ operation, dialect }: LintStep): boolean => operation.type === 'raw' && operation.dialect === dialect;

const shorten = (text: string): string => (text.length > 60 ? `${text.slice(0, 57)}…` : text);
