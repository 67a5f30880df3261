/**
 * What applications and plugins use.
 * @module @svc/sdk
 */

export type { AgentDefinition, ModelChoice, RunLimits } from '../core/agent/define.ts';
export type { ExecutionStatus, RunError, Usage } from '../core/agent/execution.ts';
export type { HumanInLoopConfig } from '../core/agent/human-in-loop.ts';
export type { ExecutionPage, ExecutionQuery, ExecutionRecord } from '../core/agent/list.ts';
export type {
  Conversation,
  ConversationCall,
  ConversationTurn,
  ModelEvent,
  ModelFactory,
  ModelOptions,
  ModelProvider,
  ModelTool,
  ScriptedTurn,
} from '../core/agent/model.ts';
export type { ParameterDefinition, ParameterMap, ParametersOf, ParameterType } from '../core/agent/parameters-of.ts';
export type { Run, RunEvent, RunOutcome, RunStep, ToolResult } from '../core/agent/run.ts';
export type { TakeOver, TakeOverOptions } from '../core/agent/take-over.ts';
export { defineTool, type ToolContext, type ToolDefinition, type ToolList } from '../core/agent/tool.ts';
export type { AuditEntry, DeliveryAttempt } from '../core/approval/audit.ts';
export {
  type Broker,
  type BrokerEvent,
  type BrokerFactory,
  type Channel,
  type ChannelFactory,
  type Delivery,
  DeliveryFailed,
} from '../core/approval/channel.ts';
export { displayed, displayedJson, shortened } from '../core/approval/display.ts';
export type { CallOptions, GateCall } from '../core/approval/gate.ts';
export type { ApprovalPage, ListQuery } from '../core/approval/list.ts';
export type { CallOutcome } from '../core/approval/outcome.ts';
export type {
  ApprovalEvent,
  ApprovalRecord,
  ApprovalRequest,
  ApprovalStatus,
  Outcome,
  OutcomeStatus,
  Parameters,
  RejectionCause,
  ToolRun,
} from '../core/approval/request.ts';
export type { DecisionReview, ToolCall, ToolCallReview, Verdict } from '../core/approval/review.ts';
export type { Signal, SignalAnswer, SignalOptions } from '../core/approval/signal.ts';
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
export type { Origin as HistoryOrigin, Status as HistoryStatus } from '../core/migration/history.ts';
export type { Migration } from '../core/migration/migration.ts';
export type { ResolveReport } from '../core/migration/resolve.ts';
export { definePlugin } from '../core/plugin.ts';
export type {
  AnyRecordDefinition,
  Guard as RecordGuard,
  Page as RecordPage,
  PageQuery as RecordQuery,
  RecordDefinition,
  RecordIndex,
  RecordStore,
  RecordValues,
  Versioned as VersionedRecord,
  Writable as WritableRecord,
} from '../core/records.ts';
export type { Registry } from '../core/registry.ts';
export { remedies } from '../core/remedies.ts';
export type {
  Action,
  CheckConstraint,
  Collection,
  Constraint,
  Default,
  Field,
  ForeignKey,
  Index,
  IndexColumn,
  PrimaryKeyConstraint,
  SchemaModel,
  TableOptions,
  UniqueConstraint,
} from '../core/schema/model.ts';
export type {
  AddConstraint,
  AddField,
  ConstraintDefinition,
  CreateCollection,
  CreateIndex,
  DropCollection,
  DropConstraint,
  DropField,
  DropIndex,
  FieldChanges,
  FieldDefinition,
  ModifyField,
  NamedField,
  Operation,
  OperationType,
  RenameCollection,
  RenameField,
} from '../core/schema/operation.ts';
export type {
  CassandraOptions,
  CreateOptions,
  DynamoKey,
  DynamoOptions,
  MongoOptions,
  SqlOptions,
} from '../core/schema/options.ts';
export { FIELD_TYPES, type FieldType, type FieldTypeName } from '../core/schema/types.ts';
export { version } from '../core/version.ts';
export type { Agent, DefinedAgent, RunRequest } from './agent.ts';
export type { Agents } from './agents.ts';
export { approvalHandler } from './approval-handler.ts';
export type { Approvals, ShownRecord } from './approvals.ts';
export { type ConnectRequest, DatabaseService, Svc, type SvcOptions } from './client.ts';
export {
  type ApprovalsConfig,
  type BrokerConfig,
  type Config,
  type ConfigFunction,
  type DatabaseConfig,
  defineConfig,
} from './define.ts';
export type { Gate, GateDefinition } from './gate.ts';
