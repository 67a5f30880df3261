/**
 * Building blocks for dialects outside this package.
 * @module @svc/sdk/dialect
 */

export type {
  Assignment,
  BlockingSession,
  ChangeOfRead,
  Condition,
  LockOptions,
  ObjectPlace,
  ObjectRules,
  PermissionProbe,
  PreflightFailure,
  PreflightReport,
  Progress,
  RunObserver,
  RunOutcome,
  Segment,
  StatementLock,
  TableCopy,
  UnsupportedObject,
  UpdateJob,
  WholeCatalog,
} from '../../core/dialect.ts';
export { mergedPage } from '../../core/merged-page.ts';
export {
  anyDefinition,
  buildPage,
  CLOCK,
  ELAPSED,
  endsElapsed,
  type PagePosition,
  pageIndex,
  pageStart,
  type RecordColumn,
  type RecordValue,
  type RecordWrite,
  typedStore,
} from '../../core/records.ts';
export { apply } from '../../core/schema/apply.ts';
export { defineConstraint } from '../../core/schema/constraint.ts';
export type { ObjectModel } from '../../core/schema/database-object.ts';
export { applyFieldChanges } from '../../core/schema/define-field.ts';
export { type Reference, referencesTo } from '../../core/schema/keys.ts';
export { isExpression } from '../../core/schema/literal.ts';
export { deserializeCollection, type SerializedCollection, serializeCollection } from '../../core/schema/model.ts';
export type { NameKind, NameLimit, NameRules } from '../../core/schema/names.ts';
export type { Raw } from '../../core/schema/operation.ts';
export {
  FEATURES,
  type Feature,
  requiredFeatures,
  type UnsupportedFeatures,
  type UnsupportedReason,
} from '../../core/schema/unsupported-features.ts';
export { SerialQueue } from '../shared/serial-queue.ts';
export { convertingErrors, lockLostError } from './shared/errors.ts';
export type { KeyValueStep } from './shared/key-value/compile.ts';
export { type KeyValueDialect, keyValueDialect, UNSUPPORTED_BY_KEY_VALUE } from './shared/key-value/dialect.ts';
export type {
  EntryRange,
  ExpectedText,
  KeyValueCommit,
  KeyValueDriver,
  RowOutcome,
  RowValues,
  RowWrite,
  SetEntry,
} from './shared/key-value/driver.ts';
export {
  type EmbeddedKeyValueDialect,
  embeddedKeyValueDialect,
  type KeyValueFile,
  type KeyValueTransaction,
} from './shared/key-value/embedded.ts';
export type { KeyRange, KeyValueRow } from './shared/key-value/object-rows.ts';
export { type KeyCommit, type OrderedKeyServer, orderedKeyDriver } from './shared/key-value/ordered-keys.ts';
export { type RowUpdate, rowUpdate, type TextRow, textValue } from './shared/key-value/text-rows.ts';
export { isLeased, type Lease, type LeaseStore, leaseTable, withLeaseLock } from './shared/lease.ts';
export { runSegments, type SegmentSteps, type StepsInTransaction } from './shared/run-segments.ts';
export {
  booleanOption,
  connectTimeoutMs,
  integerOption,
  type NoOptions,
  type Option,
  type Options,
  type OptionValues,
  readSettings,
  stringOption,
} from './shared/settings.ts';
export { shareInstance } from './shared/share-instance.ts';
export { columnDefinition, defaultExpression, fieldConstraints, primaryKeyConstraint } from './sql/column.ts';
export { alterTable, compileSql, constraintDefinition, primaryKeyAfter } from './sql/compile.ts';
export { type EngineErrors, type ErrorPatterns, engineErrors, errorConverter } from './sql/engine-errors.ts';
export { type Grammar, type RenamedConstraint, type StatementFacts, UNSUPPORTED_BY_SQL } from './sql/grammar.ts';
export { isLossyCast } from './sql/lossy-casts.ts';
export { derivedConstraints, enumCheckName, primaryKeyName, relationNames, uniqueName } from './sql/names.ts';
export { type RecordBackend, recordStore, recordTableStatements, VERSION_COLUMN } from './sql/record-store.ts';
export {
  engineFilledColumns,
  engineFilledValues,
  type RecordGrammar,
  readRecordColumn,
  recordLiteral,
} from './sql/record-values.ts';
export { recordWriteSql, writeRecord } from './sql/record-write.ts';
export type { CatalogQueries } from './sql/server/catalog-rows.ts';
export {
  type SqlServerDialect,
  STANDARD_TYPES,
  sqlServerDialect,
  UNSUPPORTED_BY_SQL_SERVER,
} from './sql/server/dialect.ts';
export type { SqlServer } from './sql/server/driver.ts';
export { type SqlServerStep, sqlServerGrammar } from './sql/server/grammar.ts';
export type { Precondition } from './sql/server/preconditions.ts';
export type { CatalogName, ColumnChange, SqlServerSyntax } from './sql/server/syntax.ts';
export { type ExecSql, type Result, retryTransient, rowsOf, type Session } from './sql/session.ts';
export {
  isRaw,
  type RawSql,
  SCHEMA_PLACEHOLDER,
  type SqlText,
  StatementTemplate,
  sqlStatement,
} from './sql/statement.ts';
export { compileTextCatalog, type TextCatalogStatement, type TextCatalogStep } from './sql/text-catalog/compile.ts';
export { sqlConnection, type TextCatalogDialect, textCatalogDialect } from './sql/text-catalog/dialect.ts';
export type { RunScript, SqlDriver } from './sql/text-catalog/driver.ts';
export {
  type EmbeddedDatabase,
  type EmbeddedDialect,
  embeddedDialect,
  UNSUPPORTED_BY_EMBEDDED,
} from './sql/text-catalog/embedded.ts';
export { readTextCatalog, type TextCatalog } from './sql/text-catalog/read.ts';
export {
  normalizeTextCatalog,
  quoteIdentifier,
  quoteLiteral,
  type TextCatalogSyntax,
} from './sql/text-catalog/syntax.ts';
export { type UpdateParts, type UpdateSyntax, updateParts } from './sql/update-sql.ts';
export { applyValidated, expressionProblem, type ValidationRules } from './sql/validate.ts';
