import { changedField, forExistingTables } from '../../../core/lint/existing-tables.ts';
import type { LintRule } from '../../../core/lint/rule.ts';
import { alterClauses, matching, SQL_NAME } from '../../../core/lint/sql-text.ts';
import type { Field } from '../../../core/schema/model.ts';

/**
 * What copies a table of MySQL or MariaDB, or blocks it, by "Online DDL Operations" in MySQL's manual. `svc db migrate` tries
 * each statement without a copy first, and refuses to copy a table with many rows unless it may.
 */
const ALLOW = 'Run it with --allow-copy, or "allow": ["copy"] in the migration, at a time when writes may wait;';

const rules: readonly LintRule[] = [
  {
    id: 'SVC131',
    name: 'table-copied',
    level: 'warning',
    summary: 'A change that the server can only make by copying the table.',
    impact: 'Writes to the table wait until all rows are copied. svc refuses it for a table with many rows.',
    fix: `${ALLOW} or add a second field, copy the values with db.update, and drop the old one later.`,
    scalesWithRows: true,
    check: (step) => [
      ...forExistingTables(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        return from && to && isCopied(from, to)
          ? { table: collection, message: `"${collection}" is copied for the type of "${field}".` }
          : undefined;
      }),
      ...forExistingTables(step, 'addConstraint', ({ collection, constraint }) =>
        constraint.type === 'foreignKey' || constraint.type === 'check'
          ? { table: collection, message: `"${collection}" is copied for "${constraint.name}".` }
          : undefined,
      ),
    ],
  },
  {
    id: 'SVC132',
    name: 'algorithm-not-said',
    level: 'warning',
    summary: 'A raw ALTER TABLE does not say how the server may run it.',
    impact: 'If the server cannot change the table in place it copies it without a word, and writes wait.',
    fix: 'Use the operation for it; or end the statement with ", ALGORITHM=INPLACE, LOCK=NONE", so that it fails instead.',
    scalesWithRows: true,
    check: ({ sql, isNew }) =>
      [...new Set(alterClauses(sql).map(({ table }) => table))].flatMap((table) =>
        isNew(table) ||
        alterClauses(sql).some((one) => one.table === table && /^(?:algorithm|lock) ?=? ?\w/i.test(one.clause))
          ? []
          : [{ table, message: `"${table}" is altered without ALGORITHM and LOCK.` }],
      ),
  },
  {
    id: 'SVC133',
    name: 'table-blocked',
    level: 'error',
    summary: 'A statement locks or rebuilds a whole table.',
    impact: 'Writes, and for some statements reads, wait until it ends.',
    fix: 'Leave it out, or run it outside of migrations in a maintenance window.',
    check: ({ sql, isNew }) =>
      matching(
        sql,
        new RegExp(
          `^(?:lock tables?|optimize (?:local |no_write_to_binlog )?table|repair table|flush tables) (${SQL_NAME})`,
          'i',
        ),
      ).flatMap(({ table, text }) =>
        isNew(table) ? [] : [{ table, message: `"${text.split(' ', 1)[0]?.toUpperCase()} TABLE" of "${table}".` }],
      ),
  },
  {
    id: 'SVC134',
    name: 'time-of-2038',
    level: 'note',
    summary: 'A field has the native type timestamp.',
    impact: 'It holds no moment after 2038-01-19 03:14:07 UTC.',
    fix: 'Use the field type timestamp without "native": see the types page.',
    check: ({ operation, after }) =>
      operation.type === 'createCollection' || operation.type === 'addField'
        ? [...(after.get(operation.type === 'addField' ? operation.collection : operation.name)?.fields.values() ?? [])]
            .filter(({ name }) => operation.type === 'createCollection' || name === operation.field.name)
            .filter(({ native }) => /^timestamp\b/i.test(native ?? ''))
            .map(({ name }) => ({ message: `"${name}" is a timestamp.` }))
        : [],
  },
];

/** A longer string within the same length of its length, and more values at the end of an enum, are changed in place. */
function isCopied(from: Field, to: Field): boolean {
  if (from.native !== to.native || from.type !== to.type) return true;
  if (to.native !== undefined) return false;
  switch (to.type) {
    case 'string': {
      const [before, after] = [from.length ?? 255, to.length ?? 255];
      // utf8mb4: up to 255 bytes the length itself takes one byte, then two.
      return after < before || (before * 4 <= 255 && after * 4 > 255);
    }
    case 'decimal':
      return from.precision !== to.precision || from.scale !== to.scale;
    case 'enum':
      return !(from.enumValues ?? []).every((value, at) => to.enumValues?.[at] === value);
    case 'binary':
      return from.length !== to.length;
    default:
      return false;
  }
}

export default rules;
