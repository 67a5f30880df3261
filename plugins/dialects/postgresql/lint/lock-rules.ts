import { changedField, forExistingTables } from '../../../../core/lint/existing-tables.ts';
import type { LintMatch, LintRule, LintStep } from '../../../../core/lint/rule.ts';
import { type AlterClause, alterClauses, matching, plainName, SQL_NAME } from '../../../../core/lint/sql-text.ts';
import type { Field } from '../../../../core/schema/model.ts';
import type { NamedFieldDefinition } from '../../../../core/schema/operation.ts';
import { isPartitioned } from '../compile/native-options.ts';

/**
 * What holds a lock on a table for as long as its rows are read or written, so that others wait. Measured on PostgreSQL 15
 * with 1,500,000 rows; see also "Explicit Locking" and the notes of ALTER TABLE in its manual.
 */

const name = (pattern: string): RegExp => new RegExp(pattern.replaceAll('<name>', `(${SQL_NAME})`), 'i');

/** What a rule finds in the clauses of raw ALTER TABLE statements on tables that this migration does not create. */
const inClauses = (step: LintStep, pattern: RegExp, describe: (clause: AlterClause) => string): readonly LintMatch[] =>
  alterClauses(step.sql).flatMap((one) =>
    pattern.test(one.clause) && !step.isNew(one.table) ? [{ table: one.table, message: describe(one) }] : [],
  );

/** What a rule finds in raw statements; the first group is the table. */
const inStatements = (step: LintStep, pattern: RegExp, describe: (table: string) => string): readonly LintMatch[] =>
  matching(step.sql, pattern).flatMap(({ table }) =>
    step.isNew(table) ? [] : [{ ...(table !== '' && { table }), message: describe(table) }],
  );

/** What a rule finds in an operation that svc compiles to statements that do not block the table, where it may. */
const inBlockingChanges: typeof forExistingTables = (step, type, find) =>
  forExistingTables(step, type, (operation) =>
    step.migration.online === false || isPartitioned(step.before.get(operation.collection))
      ? find(operation)
      : undefined,
  );

const READS_ALL = 'Reads and writes of the table wait while all of its rows are read.';
const REWRITES = 'Reads and writes of the table wait while all of its rows, and all of its indexes, are rewritten.';

const VOLATILE = String.raw`default (?:\(?)(?:gen_random_uuid|uuid_generate_v\w+|random|clock_timestamp|timeofday|nextval|txid_current)\s*\(`;

export const lockRules: readonly LintRule[] = [
  {
    id: 'SVC101',
    name: 'index-blocks-writes',
    level: 'error',
    summary: 'An index is created on a table that exists, in a way that blocks writes.',
    impact: 'Writes to the table wait until the index is built.',
    fix: 'Leave out "online": false. In raw SQL: CREATE INDEX CONCURRENTLY with "transaction": false.',
    scalesWithRows: true,
    check: (step) => [
      ...inBlockingChanges(step, 'createIndex', ({ collection, index, sqlOptions }) =>
        sqlOptions?.concurrently
          ? undefined
          : { table: collection, message: `The index "${index}" is built while writes to "${collection}" wait.` },
      ),
      ...inStatements(
        step,
        name('^create (?:unique )?index (?!concurrently)(?:if not exists )?(?:(?!on ).)*? ?on (?:only )?<name>'),
        (table) => `An index is built while writes to "${table}" wait.`,
      ),
      ...inStatements(
        step,
        name(String.raw`^reindex (?!.*\bconcurrently\b)(?:\(.*?\) )?(?:index|table|schema|database|system) <name>`),
        (table) => `REINDEX builds indexes of "${table}" while writes wait.`,
      ),
    ],
  },
  {
    id: 'SVC102',
    name: 'unique-constraint-blocks',
    level: 'error',
    summary: 'A unique constraint is added to a table that exists.',
    impact: 'Reads and writes of the table wait until its index is built.',
    fix: 'Leave out "online": false. In raw SQL: CREATE UNIQUE INDEX CONCURRENTLY with "transaction": false, then ADD CONSTRAINT … UNIQUE USING INDEX.',
    scalesWithRows: true,
    check: (step) => [
      ...inBlockingChanges(step, 'addConstraint', ({ collection, constraint }) =>
        constraint.type === 'unique'
          ? {
              table: collection,
              message: `The index of "${constraint.name}" is built while "${collection}" is locked.`,
            }
          : undefined,
      ),
      ...inBlockingChanges(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        return to?.unique && !from?.unique
          ? { table: collection, message: `The unique index of "${collection}.${field}" is built under a lock.` }
          : undefined;
      }),
      ...inBlockingChanges(step, 'addField', ({ collection, field }) =>
        field.unique
          ? { table: collection, message: `The unique index of "${collection}.${field.name}" is built under a lock.` }
          : undefined,
      ),
      ...inClauses(
        step,
        /^add (?:constraint \S+ )?unique (?!using index)|^add (?:column )?(?!constraint )\S+ .*\bunique\b/i,
        ({ table }) => `The index of a unique constraint of "${table}" is built under a lock.`,
      ),
    ],
  },
  {
    id: 'SVC103',
    name: 'foreign-key-blocks',
    level: 'error',
    summary: 'A foreign key is added to a table that exists, and validated at once.',
    impact: 'Writes to both tables wait while every row is looked up in the referenced table.',
    fix: 'Leave out "online": false. In raw SQL: add it NOT VALID, and VALIDATE CONSTRAINT in a later migration.',
    scalesWithRows: true,
    check: (step) => [
      ...inBlockingChanges(step, 'addConstraint', ({ collection, constraint }) =>
        constraint.type === 'foreignKey' && !isNotValid(constraint.native)
          ? { table: collection, message: `All rows of "${collection}" are checked for "${constraint.name}".` }
          : undefined,
      ),
      ...inClauses(
        step,
        /^add (?:constraint \S+ )?foreign key (?!.*\bnot valid\b)/i,
        ({ table }) => `All rows of "${table}" are checked for a foreign key.`,
      ),
    ],
  },
  {
    id: 'SVC104',
    name: 'check-blocks',
    level: 'error',
    summary: 'A check is added to a table that exists, and validated at once.',
    impact: READS_ALL,
    fix: 'Leave out "online": false. In raw SQL: add it NOT VALID, and VALIDATE CONSTRAINT in a later migration.',
    scalesWithRows: true,
    check: (step) => [
      ...inBlockingChanges(step, 'addConstraint', ({ collection, constraint }) =>
        constraint.type === 'check' && !isNotValid(constraint.native)
          ? { table: collection, message: `All rows of "${collection}" are checked for "${constraint.name}".` }
          : undefined,
      ),
      ...inClauses(
        step,
        /^add (?:constraint \S+ )?check ?\((?!.*\bnot valid\b)/i,
        ({ table }) => `All rows of "${table}" are checked.`,
      ),
      ...inStatements(
        step,
        name(String.raw`^alter domain <name> add (?:constraint \S+ )?check(?!.*\bnot valid\b)`),
        (domain) => `All tables with the domain "${domain}" are checked.`,
      ),
    ],
  },
  {
    id: 'SVC105',
    name: 'required-blocks',
    level: 'error',
    summary: 'A field becomes required.',
    impact: READS_ALL,
    fix: 'Leave out "online": false. In raw SQL: first add a check "<field> IS NOT NULL" NOT VALID, and validate it in a migration of its own: PostgreSQL then does not read the rows.',
    scalesWithRows: true,
    check: (step) => [
      ...inBlockingChanges(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        return to?.required && !from?.required && !hasNotNullCheck(step, collection, field)
          ? { table: collection, message: `All rows of "${collection}" are read for a value in "${field}".` }
          : undefined;
      }),
      ...alterClauses(step.sql).flatMap(({ table, clause }) => {
        const [, field] = /^alter (?:column )?(\S+) set not null$/i.exec(clause) ?? [];
        return field !== undefined && !step.isNew(table) && !hasNotNullCheck(step, table, plainName(field))
          ? [{ table, message: `All rows of "${table}" are read for a value in "${plainName(field)}".` }]
          : [];
      }),
    ],
  },
  {
    id: 'SVC106',
    name: 'type-rewrites-table',
    level: 'error',
    summary: 'A field gets a type whose values are stored differently.',
    impact: REWRITES,
    fix: 'Add a second field of the new type, write to both, copy the values with db.update, and drop the old one later. Where the table has more than 10,000 rows, svc refuses it without --allow-copy. A longer string, text instead of string, and a higher precision with the same scale are free.',
    scalesWithRows: true,
    check: (step) => [
      ...forExistingTables(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        return from && to && rewrites(from, to)
          ? { table: collection, message: `"${collection}" is rewritten for the type of "${field}".` }
          : undefined;
      }),
      ...inClauses(
        step,
        /^alter (?:column )?\S+ (?:set data )?type (?!(?:text|varchar|character varying)$)/i,
        ({ table }) => `"${table}" may be rewritten for another type.`,
      ),
    ],
  },
  {
    id: 'SVC107',
    name: 'enum-reads-all-rows',
    level: 'warning',
    summary: 'The values of an enum change, or a field of type enum is added to a table that exists.',
    impact: `${READS_ALL} An enum is a text with a check.`,
    fix: 'Leave out "online": false.',
    scalesWithRows: true,
    check: (step) => [
      ...inBlockingChanges(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        return to?.type === 'enum' && to.native === undefined && String(from?.enumValues) !== String(to.enumValues)
          ? { table: collection, message: `All rows of "${collection}" are checked for the values of "${field}".` }
          : undefined;
      }),
      ...inBlockingChanges(step, 'addField', ({ collection, field }) =>
        field.type.toLowerCase() === 'enum' && field.native === undefined
          ? { table: collection, message: `All rows of "${collection}" are checked for the values of "${field.name}".` }
          : undefined,
      ),
    ],
  },
  {
    id: 'SVC108',
    name: 'default-rewrites-table',
    level: 'error',
    summary: 'A field is added whose default differs from row to row.',
    impact: REWRITES,
    fix: 'For numbers: add the field without autoGenerate, fill the rows with db.update, and set it with modifyField. svc fills other values in batches, unless the migration has "online": false. A constant and "now" are free.',
    scalesWithRows: true,
    check: (step) => [
      ...forExistingTables(step, 'addField', ({ collection, field }) =>
        hasSequence(field)
          ? { table: collection, message: `"${collection}" is rewritten for the values of "${field.name}".` }
          : undefined,
      ),
      ...inBlockingChanges(step, 'addField', ({ collection, field }) =>
        field.autoGenerate && !hasSequence(field)
          ? { table: collection, message: `"${collection}" is rewritten for the values of "${field.name}".` }
          : undefined,
      ),
      ...inClauses(
        step,
        new RegExp(
          `^add (?:column )?(?!constraint ).*(?:${VOLATILE}|\\b(?:small|big)?serial\\b|\\bas identity\\b)`,
          'i',
        ),
        ({ table }) => `"${table}" is rewritten for a default that differs from row to row.`,
      ),
    ],
  },
  {
    id: 'SVC109',
    name: 'computed-field-rewrites-table',
    level: 'error',
    summary: 'A stored computed field is added to a table that exists.',
    impact: REWRITES,
    fix: 'Add a plain field, fill it with db.update, and keep it up to date by a trigger; or compute it in a view.',
    scalesWithRows: true,
    check: (step) => [
      ...forExistingTables(step, 'addField', ({ collection, field }) =>
        /\bgenerated always as \(.*\bstored\b/is.test(field.native ?? '')
          ? { table: collection, message: `"${collection}" is rewritten for the values of "${field.name}".` }
          : undefined,
      ),
      ...inClauses(
        step,
        /^add (?:column )?.*\bgenerated always as ?\(.*\) ?stored\b/i,
        ({ table }) => `"${table}" is rewritten for a computed column.`,
      ),
    ],
  },
  {
    id: 'SVC110',
    name: 'primary-key-blocks',
    level: 'error',
    summary: 'A table that exists gets a primary key.',
    impact: 'Reads and writes of the table wait until its index is built and all rows are read.',
    fix: 'Leave out "online": false. In raw SQL: CREATE UNIQUE INDEX CONCURRENTLY with "transaction": false, then ADD CONSTRAINT … PRIMARY KEY USING INDEX.',
    scalesWithRows: true,
    check: (step) => [
      ...inBlockingChanges(step, 'addConstraint', ({ collection, constraint }) =>
        constraint.type === 'primaryKey'
          ? { table: collection, message: `The index of the primary key of "${collection}" is built under a lock.` }
          : undefined,
      ),
      ...inBlockingChanges(step, 'addField', ({ collection, field }) =>
        field.primaryKey
          ? { table: collection, message: `The index of the primary key of "${collection}" is built under a lock.` }
          : undefined,
      ),
      ...inClauses(
        step,
        /^add (?:constraint \S+ )?primary key (?!using index)|^add (?:column )?(?!constraint )\S+ .*\bprimary key\b/i,
        ({ table }) => `The index of the primary key of "${table}" is built under a lock.`,
      ),
    ],
  },
  {
    id: 'SVC111',
    name: 'index-drop-blocks',
    level: 'warning',
    summary: 'An index is dropped, and not concurrently.',
    impact: 'The table is locked; queries that run at that moment block it, and everything after it waits with it.',
    fix: 'Leave out "online": false. In raw SQL with "transaction": false: DROP INDEX CONCURRENTLY.',
    check: (step) => [
      ...inBlockingChanges(step, 'dropIndex', ({ collection, index }) => ({
        table: collection,
        message: `"${index}" is dropped while "${collection}" is locked.`,
      })),
      ...matching(step.sql, name('^drop index (?!concurrently)(?:if exists )?<name>')).map(({ table: index }) => ({
        message: `The index "${index}" is dropped while its table is locked.`,
      })),
    ],
  },
  {
    id: 'SVC112',
    name: 'exclusion-constraint-blocks',
    level: 'error',
    summary: 'An exclusion constraint is added to a table that exists.',
    impact: 'Reads and writes of the table wait until its index is built; there is no concurrent way.',
    fix: 'Add it when the table is created, or in a maintenance window.',
    scalesWithRows: true,
    check: (step) => [
      ...inClauses(
        step,
        /^add (?:constraint \S+ )?exclude\b/i,
        ({ table }) => `The index of an exclusion constraint of "${table}" is built under a lock.`,
      ),
      ...(step.operation.type === 'createObject' && step.operation.kind === 'exclusion'
        ? [step.operation.name.split('.')[0] ?? ''].flatMap((table) =>
            step.isNew(table)
              ? []
              : [{ table, message: `The index of an exclusion constraint of "${table}" is built under a lock.` }],
          )
        : []),
    ],
  },
  {
    id: 'SVC113',
    name: 'validated-under-lock',
    level: 'warning',
    summary: 'A constraint is added NOT VALID and validated in the same migration.',
    impact: 'Both are in one transaction, so the lock of the first is held while all rows are read for the second.',
    fix: 'Validate it in a migration of its own.',
    scalesWithRows: true,
    check: (step) =>
      alterClauses(step.sql).flatMap(({ table, clause }) => {
        const [, constraint] = /^validate constraint (\S+)/i.exec(clause) ?? [];
        return constraint !== undefined && isAddedBefore(step, plainName(constraint))
          ? [{ table, message: `"${plainName(constraint)}" is added and validated in one transaction.` }]
          : [];
      }),
  },
  {
    id: 'SVC114',
    name: 'rows-changed-under-lock',
    level: 'error',
    summary: 'Rows are changed in the migration that also changes their table.',
    impact: 'The table is locked from its first change until the migration ends, so everything waits for the rows too.',
    fix: 'Change the rows in a migration of its own, or with db.update, which works in batches.',
    scalesWithRows: true,
    check: (step) => {
      if (step.sql.length === 0) return [];
      const locked = new Set(step.earlier.flatMap((one) => ('collection' in one ? [one.collection] : [])));
      return matching(step.sql, name('^(?:update (?:only )?|delete from (?:only )?|insert into )<name>')).flatMap(
        ({ table, text }) =>
          locked.has(table) && !step.isNew(table) && !/^insert into .* values\b/i.test(text)
            ? [{ table, message: `Rows of "${table}" are changed while it is locked.` }]
            : [],
      );
    },
  },
  {
    id: 'SVC115',
    name: 'table-rewritten',
    level: 'error',
    summary: 'A statement rewrites a whole table.',
    impact: REWRITES,
    fix: 'Use pg_repack, or a maintenance window.',
    scalesWithRows: true,
    check: (step) => [
      ...inStatements(
        step,
        name(String.raw`^vacuum (?:\(.*\bfull\b.*\) |full )(?:verbose |analyze |freeze )*<name>`),
        (table) => `VACUUM FULL rewrites "${table}".`,
      ),
      ...inStatements(step, name('^cluster (?:verbose )?<name>'), (table) => `CLUSTER rewrites "${table}".`),
      ...inClauses(
        step,
        /^set (?:logged|unlogged|tablespace|access method)\b/i,
        ({ table, clause }) => `"${clause}" rewrites "${table}".`,
      ),
    ],
  },
  {
    id: 'SVC116',
    name: 'table-locked',
    level: 'error',
    summary: 'A statement locks a table.',
    impact: 'Everything that needs the table waits until the migration ends.',
    fix: 'Leave it out: each statement takes the locks that it needs, for as long as it needs them.',
    check: (step) => inStatements(step, name('^lock (?:table )?(?:only )?<name>'), (table) => `"${table}" is locked.`),
  },
  {
    id: 'SVC117',
    name: 'refresh-blocks-reads',
    level: 'warning',
    summary: 'A materialized view is refreshed, and not concurrently.',
    impact: 'Reads of the view wait until it is computed.',
    fix: 'REFRESH MATERIALIZED VIEW CONCURRENTLY, which needs a unique index of the view.',
    check: (step) =>
      inStatements(
        step,
        name('^refresh materialized view (?!concurrently)<name>'),
        (view) => `Reads of "${view}" wait until it is computed.`,
      ),
  },
  {
    id: 'SVC118',
    name: 'partition-blocks',
    level: 'warning',
    summary: 'A partition is attached or detached.',
    impact: 'Attaching reads all rows of the partition unless a check proves its bounds; detaching locks the parent.',
    fix: 'Before ATTACH, add a check of the same bounds NOT VALID and validate it; DETACH PARTITION … CONCURRENTLY with "transaction": false.',
    check: (step) =>
      inClauses(
        step,
        /^attach partition\b|^detach partition (?!.*\bconcurrently\b)/i,
        ({ table, clause }) => `"${clause.split(' ', 1)[0]?.toUpperCase()} PARTITION" of "${table}".`,
      ),
  },
  {
    id: 'SVC120',
    name: 'trigger-locks-table',
    level: 'note',
    summary: 'A trigger is created on a table that exists.',
    impact: 'Writes to the table wait for a moment, and from then on each runs the trigger.',
    fix: 'Measure what the trigger costs for each row.',
    check: (step) => [
      ...inStatements(
        step,
        name('^create (?:or replace )?(?:constraint )?trigger (?:(?! on ).)+ on <name>'),
        (table) => `A trigger is created on "${table}".`,
      ),
      ...(step.operation.type === 'createObject' && step.operation.kind === 'trigger'
        ? [step.operation.name.split('.')[0] ?? ''].flatMap((table) =>
            step.isNew(table) ? [] : [{ table, message: `A trigger is created on "${table}".` }],
          )
        : []),
    ],
  },
];

/** The server numbers the rows when it adds the field. */
const hasSequence = ({ type, autoGenerate, native = '' }: NamedFieldDefinition): boolean =>
  (autoGenerate === true && /int/i.test(type)) || /\b(?:serial|smallserial|bigserial|identity)\b/i.test(native);

const isNotValid = (native: string | undefined): boolean => /\bnot valid\b/i.test(native ?? '');

/** Whether a check of the table says that the field has a value: PostgreSQL then does not read the rows. */
const hasNotNullCheck = ({ before }: LintStep, table: string, field: string): boolean =>
  [...(before.get(table)?.constraints.values() ?? [])].some(
    (constraint) =>
      constraint.type === 'check' &&
      !isNotValid(constraint.native) &&
      constraint.columns.includes(field) &&
      /^\(*"?[^"()]+"?\)* is not null\)*$/i.test(constraint.expression.trim()),
  );

/** Whether an earlier operation of the migration adds the constraint. */
const isAddedBefore = ({ earlier, sql }: LintStep, constraint: string): boolean =>
  earlier.some(
    (one) =>
      (one.type === 'addConstraint' && one.constraint.name === constraint) ||
      (one.type === 'raw' && new RegExp(`\\badd constraint "?${constraint}"? `, 'i').test(one.statement)),
  ) || alterClauses(sql).some(({ clause }) => new RegExp(`^add constraint "?${constraint}"? `, 'i').test(clause));

/** Whether PostgreSQL stores the values differently, or has to look at each. */
function rewrites(from: Field, to: Field): boolean {
  if (from.native !== to.native) return true;
  if (from.native !== undefined) return false;
  if (from.type !== to.type) {
    const isText = (type: Field['type']): boolean => type === 'text' || type === 'string' || type === 'enum';
    if (isText(from.type) && to.type === 'text') return false;
    return !(isBytes(from) && isBytes(to)) && !(isText(from.type) && to.type === 'enum');
  }
  switch (to.type) {
    case 'string':
      return (to.length ?? 255) < (from.length ?? 255);
    case 'decimal':
      return to.scale !== from.scale || (to.precision ?? 0) < (from.precision ?? 0);
    case 'array':
      return to.items !== from.items;
    default:
      return false;
  }
}

const isBytes = ({ type }: Field): boolean => type === 'binary' || type === 'blob';
