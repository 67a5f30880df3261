import { changedField, forExistingTables } from '../../../core/lint/existing-tables.ts';
import type { LintRule } from '../../../core/lint/rule.ts';

const rules: readonly LintRule[] = [
  {
    id: 'SVC601',
    name: 'documents-rewritten',
    level: 'warning',
    summary: 'A field is renamed, dropped, or gets another type.',
    impact:
      'Every document of the collection is written; replicas lag while it runs. It resumes after an interruption.',
    fix: 'Run it at a quiet time; or write the new field from the application, and drop the old one later.',
    scalesWithRows: true,
    check: (step) => [
      ...forExistingTables(step, 'renameField', ({ collection, from }) => ({
        table: collection,
        message: `Every document of "${collection}" is written for "${from}".`,
      })),
      ...forExistingTables(step, 'dropField', ({ collection, field }) => ({
        table: collection,
        message: `Every document of "${collection}" is written for "${field}".`,
      })),
      ...forExistingTables(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        return from && to && from.type !== to.type
          ? { table: collection, message: `Every document of "${collection}" is written for the type of "${field}".` }
          : undefined;
      }),
    ],
  },
  {
    id: 'SVC602',
    name: 'validator-stricter',
    level: 'warning',
    summary: 'The validator of a collection that exists becomes stricter.',
    impact: 'A document that does not fit can no longer be updated, by any code, until it fits.',
    fix: 'First fill or correct the documents with db.update.',
    check: (step) => [
      ...forExistingTables(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        return to?.required && !from?.required
          ? { table: collection, message: `Documents of "${collection}" without "${field}" no longer fit.` }
          : undefined;
      }),
      ...forExistingTables(step, 'addConstraint', ({ collection, constraint }) =>
        constraint.type === 'check'
          ? { table: collection, message: `Documents of "${collection}" may not fit "${constraint.name}".` }
          : undefined,
      ),
    ],
  },
  {
    id: 'SVC603',
    name: 'index-build',
    level: 'note',
    summary: 'An index is built on a collection that exists.',
    impact:
      'Reads and writes continue, but the build takes memory and disk on every member of the replica set at once.',
    fix: 'Run it at a quiet time.',
    scalesWithRows: true,
    check: (step) =>
      forExistingTables(step, 'createIndex', ({ collection, index }) => ({
        table: collection,
        message: `The index "${index}" is built on "${collection}".`,
      })),
  },
];

export default rules;
