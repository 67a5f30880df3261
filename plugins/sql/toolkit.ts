/**
 * What a dialect of SQL is made of, for one that is written outside of this package.
 * @module @svc/sdk/dialect
 */

export type {
  Assignment,
  Condition,
  Foreseen,
  LockOptions,
  Progress,
  RunOutcome,
  Segment,
  Underway,
  Unreadable,
  UpdateJob,
} from '../../core/dialect.ts';
export { CLOCK, ELAPSED, type RecordColumn, type RecordValue, type RecordWrite } from '../../core/records.ts';
export { apply } from '../../core/schema/apply.ts';
export { defineConstraint } from '../../core/schema/constraint.ts';
export { isExpression } from '../../core/schema/default.ts';
export { FEATURES, type Feature, featuresOf, type Refusal, type Refusals } from '../../core/schema/features.ts';
export { changedField } from '../../core/schema/field-changes.ts';
export { type Reference, referencesTo } from '../../core/schema/keys.ts';
export type { NameKind, NameRules } from '../../core/schema/names.ts';
export type { Raw } from '../../core/schema/operation.ts';
export { checked, type Rules } from './checked.ts';
export { constraintText } from './compile.ts';
export { type SqlEngine, sqlConnection } from './engine.ts';
export { expressionProblem } from './expression.ts';
export { type Grammar, OTHER_OPTIONS, type Renamed } from './grammar.ts';
export { compileKept, type KeptRun } from './kept/compile.ts';
export { type KeptDialect, keptDialect } from './kept/dialect.ts';
export { type Kept, readKept } from './kept/read.ts';
export { type KeptWords, quote, seenKept, text } from './kept/words.ts';
export { isLeased, LEASES, type Lease, type LeasePlace, leased } from './lease.ts';
export { losesSilently } from './loses.ts';
export { Queue } from './queue.ts';
export { type RecordHome, recordStore, recordTable } from './record-store.ts';
export type { Exec, Result } from './session.ts';
export { Template } from './template.ts';
export { type UpdateParts, type UpdateWords, updateParts } from './update.ts';
export { type RecordGrammar, readValue, recordValue } from './value.ts';
