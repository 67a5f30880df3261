/** The exports of `@svc/sdk` in addition to the client. */

export type { AgentDefinition, ModelChoice, RunLimits } from '../../core/agent/define.ts';
export type { ExecutionStatus, RunError, Usage } from '../../core/agent/execution-record.ts';
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
} from '../../core/agent/model.ts';
export type { ExecutionPage, ExecutionQuery, ExecutionRecord } from '../../core/agent/read-executions.ts';
export type { RecoveryOptions, RecoveryWorker } from '../../core/agent/recovery-worker.ts';
export type { Run, RunEvent, RunOutcome, RunStep, ToolResult } from '../../core/agent/run.ts';
export type { AuditCheck, AuditEntry, AuditProblem, DeliveryAttempt } from '../../core/approval/audit.ts';
export type { CallOptions, GateCall, WaitOptions } from '../../core/approval/call.ts';
export {
  type Broker,
  type BrokerEvent,
  type BrokerFactory,
  type Channel,
  type ChannelFactory,
  type Decided,
  type Delivery,
  DeliveryFailed,
  isDeliveryFailed,
  type Notice,
} from '../../core/approval/channel.ts';
export type { Signal, SignalInput, SignalOptions, SignalResult } from '../../core/approval/decide.ts';
export type { Delegation, NewDelegation } from '../../core/approval/delegations.ts';
export type { ApprovalPage, ListQuery } from '../../core/approval/list-approvals.ts';
export type { CallOutcome, PendingStatus } from '../../core/approval/outcome.ts';
export { parseDecision } from '../../core/approval/parse-decision.ts';
export type { NewToken, PersonToken } from '../../core/approval/person-tokens.ts';
export type { DecisionReview, PolicyVerdict, ToolCall, ToolCallReview } from '../../core/approval/policy.ts';
export type { Press, Presses, PressResult } from '../../core/approval/presses.ts';
export type { Principal, SignalPrincipal, Verification } from '../../core/approval/principal.ts';
export type {
  ApprovalEvent,
  ApprovalRecord,
  ApprovalRequest,
  ApprovalStatus,
  ApprovalVote,
  Outcome,
  OutcomeStatus,
  RejectionCause,
  ToolRun,
} from '../../core/approval/request.ts';
export type { RevealOptions } from '../../core/approval/reveal.ts';
export type { ApprovalRule, Condition, ReasonRequired, RoleCount } from '../../core/approval/rule.ts';
export type { MerkleStep } from '../../core/approval/seal/merkle.ts';
export type { AuditProof } from '../../core/approval/seal/proof.ts';
export type { Seal, SealedRequest, SealHeader } from '../../core/approval/seal/seal.ts';
export type { SealCheck } from '../../core/approval/seal/sealed-audit.ts';
export type { SealReport } from '../../core/approval/seal/sealer.ts';
export type { SealSink, SealSinkFactory } from '../../core/approval/seal/sink.ts';
export type { NewStandingRule, StandingRule } from '../../core/approval/standing-rules.ts';
export type { SchemaResult } from '../../core/database/automatic.ts';
export { Database } from '../../core/database/database.ts';
export type { FieldSpec, FieldSpecs, NamedIndexOptions, SchemaOperations } from '../../core/database/schema.ts';
export type { Comparison, UpdateRequest } from '../../core/database/update.ts';
export type {
  Capabilities,
  Connection,
  ConnectOptions,
  Dialect,
  LockShortage,
  Statement,
  TransactionLocks,
  UpdateResult,
} from '../../core/dialect.ts';
export { type DisplayOptions, displayJson } from '../../core/display/json.ts';
export type { DisplayedText, DisplayLimit } from '../../core/display/limit.ts';
export { displayText, shortenText } from '../../core/display/text.ts';
export { codes, type ErrorCode, remedies } from '../../core/error-codes.ts';
export { type ErrorFacts, isSvcError, SvcError } from '../../core/errors.ts';
export type { Json } from '../../core/json.ts';
export { type Kernel, PLUGIN_API_VERSION, type Plugin } from '../../core/kernel.ts';
export type { LintLevel, LintMatch, LintRule, LintRuleSet, LintStep } from '../../core/lint/rule.ts';
export type { SqlStatement } from '../../core/lint/sql-text.ts';
export {
  type DropCollectionOptions,
  type DropConstraintOptions,
  type DropFieldOptions,
  MigrationBuilder,
  MigrationHelpers,
  type ModifyFieldOptions,
  migration,
} from '../../core/migration/builder.ts';
export type { HistoryOrigin, HistoryStatus } from '../../core/migration/history-table.ts';
export type { LintIgnore, Migration, Permission } from '../../core/migration/migration.ts';
export {
  type AnyHistoryEntry,
  type HistoryEntry,
  MigrationEngine,
  type MigrationStatus,
} from '../../core/migration/migration-engine.ts';
export type { PlanReview, ShownMigration, ShownPlan } from '../../core/migration/plan-approver.ts';
export type { RawOptions } from '../../core/migration/raw-options.ts';
export type { ResolveReport } from '../../core/migration/resolve.ts';
export type { EngineResult } from '../../core/migration/runner.ts';
export type { MigrationStep, Target } from '../../core/migration/target.ts';
export { definePlugin } from '../../core/plugin.ts';
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
} from '../../core/records.ts';
export type { Registry } from '../../core/registry.ts';
export type { DatabaseObject } from '../../core/schema/database-object.ts';
export type { FieldValue } from '../../core/schema/dates.ts';
export type {
  CheckConstraint,
  Collection,
  Constraint,
  Default,
  Field,
  ForeignKey,
  Index,
  IndexColumn,
  PrimaryKeyConstraint,
  ReferentialAction,
  SchemaModel,
  UniqueConstraint,
} from '../../core/schema/model.ts';
export { FIELD_TYPES, type FieldType, type FieldTypeName } from '../../core/schema/model.ts';
export type {
  AddConstraint,
  AddField,
  ConstraintDefinition,
  CreateCollection,
  CreateIndex,
  CreateIndexOptions,
  CreateObject,
  DropCollection,
  DropConstraint,
  DropField,
  DropIndex,
  DropObject,
  FieldChanges,
  FieldDefinition,
  MigrationOperation,
  ModelOperation,
  ModifyField,
  NamedFieldDefinition,
  ObjectOperation,
  Operation,
  OperationType,
  RenameCollection,
  RenameField,
  RenameFieldOptions,
  ReplaceObject,
} from '../../core/schema/operation.ts';
export type {
  CassandraOptions,
  CreateOptions,
  DynamoKey,
  DynamoOptions,
  IndexOptions,
  MongoOptions,
  SqlOptions,
  TableOptions,
} from '../../core/schema/options.ts';
export type { BoundCall } from '../../core/tool/call-digest.ts';
export type { HumanInLoopConfig } from '../../core/tool/human-in-loop.ts';
export type { InputSchema } from '../../core/tool/input-schema.ts';
export type { JsonSchema } from '../../core/tool/json-schema.ts';
export type {
  ParameterDefinition,
  ParameterMap,
  ParametersOf,
  ParameterType,
  ToolParameters,
} from '../../core/tool/parameters.ts';
export type { StandardIssue, StandardOutput, StandardResult, StandardSchema } from '../../core/tool/standard-schema.ts';
export {
  type DefinedTool,
  defineTool,
  type SchemaTool,
  type ToolContext,
  type ToolDefinition,
  type ToolList,
  type ToolSchema,
  type TypedTool,
} from '../../core/tool/tool.ts';
export { version } from '../../core/version.ts';
export type { Widened } from '../../core/widened.ts';
// By `*`: TypeScript adds to `Dialects` through this module only if it is not listed by name.
export * from '../define.ts';
export type { Agent, DefinedAgent, RunRequest } from './agent.ts';
export type { Agents } from './agents.ts';
export type { ApprovalDetails } from './approval-details.ts';
export { type Approvals, approvalHandler } from './approvals.ts';
export type { CallbackOptions } from './callback/options.ts';
export type { Gate, GateDefinition, GuardDefinition, GuardedCall, GuardedTool, RunOptions } from './gate.ts';
export type { People } from './people.ts';
export type { SealOptions } from './seals.ts';
