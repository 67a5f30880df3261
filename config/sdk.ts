export type { Adapter } from '../core/database/adapter.ts';
export type { SchemaResult } from '../core/database/automatic.ts';
export { Database } from '../core/database/database.ts';
export type { FieldSpec, SchemaOperations } from '../core/database/schema.ts';
export type { UpdateRequest } from '../core/database/update.ts';
export type { Capabilities, Connection, ConnectOptions, Dialect, Statement, UpdateResult } from '../core/dialect.ts';
export { codes, type ErrorCode, type ErrorFacts, isSvcError, SvcError } from '../core/errors.ts';
export type { Json } from '../core/json.ts';
export { API, type Kernel, type MigrationStep, type Plugin } from '../core/kernel.ts';
export { MigrationBuilder, migration, type RawOptions } from '../core/migration/builder.ts';
export {
  type EngineResult,
  type HistoryEntry,
  MigrationEngine,
  type MigrationStatus,
} from '../core/migration/engine.ts';
export { MigrationHelpers } from '../core/migration/helpers.ts';
export type { Migration } from '../core/migration/migration.ts';
export { definePlugin } from '../core/plugin.ts';
export type { RecordDefinition, RecordStore } from '../core/records.ts';
export type { Collection, Constraint, Default, Field, Index, SchemaModel } from '../core/schema/model.ts';
export type {
  ConstraintDefinition,
  FieldChanges,
  FieldDefinition,
  NamedField,
  Operation,
  OperationType,
} from '../core/schema/operation.ts';
export type {
  CassandraOptions,
  CreateOptions,
  DynamoOptions,
  MongoOptions,
  SqlOptions,
} from '../core/schema/options.ts';
export { FIELD_TYPES, type FieldType } from '../core/schema/types.ts';
export { version } from '../core/version.ts';
export { type ConnectRequest, DatabaseService, Svc, type SvcOptions } from './client.ts';
export { type Config, type ConfigFunction, type DatabaseConfig, defineConfig } from './define.ts';
