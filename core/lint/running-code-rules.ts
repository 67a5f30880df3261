import { dataLossWarnings } from '../schema/data-risks.ts';
import { allowsLoss, changedField, forExistingTables } from './existing-tables.ts';
import type { LintRule } from './rule.ts';
import { alterClauses, matching, plainName, SQL_NAME } from './sql-text.ts';

/** What breaks code that still runs against the schema of before, on any engine. */

const TWO_DEPLOYS = 'First deploy code that needs neither; then change the schema.';

export const runningCodeRules: readonly LintRule[] = [
  {
    id: 'SVC201',
    name: 'table-renamed',
    level: 'error',
    summary: 'A table is renamed.',
    impact: 'Code that uses the old name fails from the moment of the rename until it is replaced.',
    fix: 'Keep the table and create a view of the new name, or create a new table, write to both, and drop the old one later.',
    check: (step) => [
      ...forExistingTables(step, 'renameCollection', ({ collection, to }) => ({
        table: collection,
        message: `"${collection}" is renamed to "${to}".`,
      })),
      ...alterClauses(step.sql).flatMap(({ table, clause }) =>
        /^rename (?:to|as) /i.test(clause) && !step.isNew(table) ? [{ table, message: `"${table}" is renamed.` }] : [],
      ),
      ...matching(step.sql, new RegExp(`^rename table (${SQL_NAME}) `, 'i')).map(({ table }) => ({
        table,
        message: `"${table}" is renamed.`,
      })),
    ],
  },
  {
    id: 'SVC202',
    name: 'field-renamed',
    level: 'error',
    summary: 'A field is renamed.',
    impact: 'Code that reads or writes the old name fails from the moment of the rename until it is replaced.',
    fix: 'Add a second field, write to both, copy the values, read from the new one, and drop the old one later. On PostgreSQL, MySQL and MariaDB, svc db schema generate --expand does that.',
    check: (step) => [
      ...forExistingTables(step, 'renameField', ({ collection, from, to }) => ({
        table: collection,
        message: `"${collection}.${from}" is renamed to "${to}".`,
      })),
      ...alterClauses(step.sql).flatMap(({ table, clause }) => {
        const [, from] =
          new RegExp(`^rename (?:column )?(?!to |as |constraint |index |key )(${SQL_NAME}) to `, 'i').exec(clause) ??
          new RegExp(`^change (?:column )?(${SQL_NAME}) (?!\\1 )`, 'i').exec(clause) ??
          [];
        return from !== undefined && !step.isNew(table)
          ? [{ table, message: `"${table}.${plainName(from)}" is renamed.` }]
          : [];
      }),
    ],
  },
  {
    id: 'SVC203',
    name: 'table-dropped',
    level: 'error',
    summary: 'A table is dropped.',
    impact:
      'Code that still uses it fails. Unless --keep keeps it, its rows are gone, and a rollback creates it empty.',
    fix: `${TWO_DEPLOYS} Then allow it with "allow": ["destructive"] in the migration.`,
    check: (step) => [
      ...(allowsLoss(step)
        ? []
        : forExistingTables(step, 'dropCollection', ({ collection }) => ({
            table: collection,
            message: `"${collection}" is dropped.`,
          }))),
      ...(allowsLoss(step)
        ? []
        : matching(step.sql, new RegExp(`^drop (?:table|database|schema|keyspace) (?:if exists )?(${SQL_NAME})`, 'i'))
      ).flatMap(({ table }) => (step.isNew(table) ? [] : [{ table, message: `"${table}" is dropped.` }])),
    ],
  },
  {
    id: 'SVC204',
    name: 'field-dropped',
    level: 'error',
    summary: 'A field is dropped.',
    impact:
      'Code that still reads or writes it fails. Unless --keep keeps it, its values are gone, and a rollback creates it empty.',
    fix: `${TWO_DEPLOYS} Then allow it with "allow": ["destructive"] in the migration.`,
    check: (step) =>
      allowsLoss(step)
        ? []
        : [
            ...forExistingTables(step, 'dropField', ({ collection, field, mirrors }) =>
              mirrors === undefined
                ? { table: collection, message: `"${collection}.${field}" is dropped.` }
                : undefined,
            ),
            ...alterClauses(step.sql).flatMap(({ table, clause }) => {
              const [, field] =
                new RegExp(
                  `^drop (?:column )?(?:if exists )?(?!constraint |index |key |primary |foreign |check |partition )(${SQL_NAME})`,
                  'i',
                ).exec(clause) ?? [];
              return field !== undefined && !step.isNew(table)
                ? [{ table, message: `"${table}.${plainName(field)}" is dropped.` }]
                : [];
            }),
          ],
  },
  {
    id: 'SVC205',
    name: 'required-field-added',
    level: 'error',
    summary: 'A required field without a default is added to a table that exists.',
    impact:
      'Rows that exist have no value for it, so the migration fails; code that does not know the field cannot insert.',
    fix: 'Give it a default, or add it without "required", fill it with db.update, and require it in a later migration.',
    check: (step) => [
      ...forExistingTables(step, 'addField', ({ collection, field, mirrors }) =>
        mirrors === undefined && (field.required === true || field.nullable === false)
          ? field.default === undefined && !field.autoGenerate && !isComputed(field.native)
            ? { table: collection, message: `"${collection}.${field.name}" is required and has no default.` }
            : undefined
          : undefined,
      ),
      ...alterClauses(step.sql).flatMap(({ table, clause }) =>
        /^add (?!constraint |index |key |unique |primary |foreign |check )/i.test(clause) &&
        /\bnot null\b/i.test(clause) &&
        !/\bdefault\b|\bserial\b|\bgenerated\b|\bauto_increment\b|\bas \(/i.test(clause) &&
        !step.isNew(table)
          ? [{ table, message: `A required column without a default is added to "${table}".` }]
          : [],
      ),
    ],
  },
  {
    id: 'SVC206',
    name: 'field-becomes-required',
    level: 'warning',
    summary: 'A field becomes required.',
    impact: 'The migration fails if a row has no value; code that writes none fails from then on.',
    fix: 'First deploy code that always writes a value, and fill the rows with db.update.',
    check: (step) =>
      forExistingTables(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        return from && to?.required && !from.required
          ? { table: collection, message: `"${collection}.${field}" becomes required.` }
          : undefined;
      }),
  },
  {
    id: 'SVC207',
    name: 'default-removed',
    level: 'warning',
    summary: 'The default of a required field is removed.',
    impact: 'Code that relies on the default can no longer insert.',
    fix: 'First deploy code that always writes a value.',
    check: (step) => [
      ...forExistingTables(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        return from?.default !== undefined && to?.required && to.default === undefined && !to.autoGenerate
          ? { table: collection, message: `"${collection}.${field}" loses its default.` }
          : undefined;
      }),
      ...alterClauses(step.sql).flatMap(({ table, clause }) =>
        /^alter (?:column )?\S+ drop default$/i.test(clause) && !step.isNew(table)
          ? [{ table, message: `A column of "${table}" loses its default.` }]
          : [],
      ),
    ],
  },
  {
    id: 'SVC208',
    name: 'enum-value-removed',
    level: 'error',
    summary: 'A value is removed from an enum.',
    impact: 'The migration fails if a row has it; code that still writes it fails from then on.',
    fix: 'First deploy code that no longer writes the value, and change the rows with db.update.',
    check: (step) => [
      ...forExistingTables(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        if (from?.type !== 'enum' || to?.type !== 'enum') return undefined;
        const removed = from.enumValues?.filter((value) => !to.enumValues?.includes(value)) ?? [];
        return removed.length > 0
          ? { table: collection, message: `"${collection}.${field}" no longer takes ${removed.join(', ')}.` }
          : undefined;
      }),
      ...matching(step.sql, new RegExp(`^alter type (${SQL_NAME}) rename value `, 'i')).map(({ table }) => ({
        message: `A value of the type "${table}" is renamed.`,
      })),
    ],
  },
  {
    id: 'SVC209',
    name: 'narrower-type',
    level: 'error',
    summary: 'A field gets a type that cannot hold all of its values.',
    impact: 'Values are refused or changed, and code that writes longer or other values fails from then on.',
    fix: 'Check the values first, and allow it with "allow": ["destructive"] in the migration; or add a second field.',
    check: (step) =>
      allowsLoss(step)
        ? []
        : forExistingTables(step, 'modifyField', (operation) => {
            const { from, to } = changedField(step, operation.collection, operation.field, operation.changes) ?? {};
            // A removed value has a rule of its own.
            if (!from || !to || (from.type === 'enum' && to.type === 'enum')) return undefined;
            const [loss] = dataLossWarnings(operation, step.before);
            return loss === undefined ? undefined : { table: operation.collection, message: loss };
          }),
  },
  {
    id: 'SVC210',
    name: 'becomes-unique',
    level: 'warning',
    summary: 'Values of a table that exists must become unique.',
    impact: 'The migration fails if rows have the same values; code that writes them fails from then on.',
    fix: 'Look for duplicates first, and resolve them with db.update.',
    check: (step) => [
      ...forExistingTables(step, 'createIndex', ({ collection, index, unique }) =>
        unique ? { table: collection, message: `The unique index "${index}" is created.` } : undefined,
      ),
      ...forExistingTables(step, 'addConstraint', ({ collection, constraint }) =>
        constraint.type === 'unique'
          ? { table: collection, message: `The unique constraint "${constraint.name}" is added.` }
          : undefined,
      ),
      ...forExistingTables(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        return from && to?.unique && !from.unique
          ? { table: collection, message: `"${collection}.${field}" becomes unique.` }
          : undefined;
      }),
    ],
  },
  {
    id: 'SVC211',
    name: 'field-becomes-optional',
    level: 'note',
    summary: 'A field is no longer required.',
    impact: 'Code that reads it may not expect a missing value.',
    fix: 'First deploy code that can read a row without a value.',
    check: (step) => [
      ...forExistingTables(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        return from?.required && to && !to.required
          ? { table: collection, message: `"${collection}.${field}" becomes optional.` }
          : undefined;
      }),
      ...alterClauses(step.sql).flatMap(({ table, clause }) =>
        /^alter (?:column )?\S+ drop not null$/i.test(clause) && !step.isNew(table)
          ? [{ table, message: `A column of "${table}" becomes optional.` }]
          : [],
      ),
    ],
  },
  {
    id: 'SVC212',
    name: 'object-dropped',
    level: 'warning',
    summary: 'A view, a routine or another object is dropped.',
    impact: 'Code that still uses it fails.',
    fix: TWO_DEPLOYS,
    check: ({ operation, migration, sql }) => [
      ...(operation.type === 'dropObject' &&
      USED_BY_CODE.has(operation.kind) &&
      // Moved aside for a change, and created again.
      !migration.up.some(
        (one) => one.type === 'createObject' && one.kind === operation.kind && one.name === operation.name,
      )
        ? [{ message: `The ${operation.kind} "${operation.name}" is dropped.` }]
        : []),
      ...matching(
        sql,
        new RegExp(`^drop (?:materialized )?(?:view|function|procedure|type|domain) (?:if exists )?(${SQL_NAME})`, 'i'),
      ).map(({ table }) => ({ message: `"${table}" is dropped.` })),
    ],
  },
];

const USED_BY_CODE: ReadonlySet<string> = new Set([
  'view',
  'materialized_view',
  'function',
  'procedure',
  'type',
  'domain',
]);

const isComputed = (native: string | undefined): boolean => /\b(?:generated|as \(|serial|identity)/i.test(native ?? '');
