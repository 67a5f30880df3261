/**
 * Test suites for plugins: each checks that an implementation fulfills its contract.
 * @module @svc/sdk/testing
 */

export type { StorageBackend } from '../../core/approval/backend.ts';
export { approvalSuite } from './approval-suite.ts';
export { brokerSuite } from './broker-suite.ts';
export type { BrokerClient, BrokerMessage, BrokerUnderTest } from './broker-under-test.ts';
export { channelSuite } from './channel-suite.ts';
export {
  type ButtonPress,
  type ChannelMessage,
  type ChannelReceiver,
  type ChannelUnderTest,
  type DecisionReceiver,
  type DecisionsUnderTest,
  type EndpointUnderTest,
  type PressedButtons,
  type PressesUnderTest,
  RETRY_AFTER_SECONDS,
  type ReceiverBehaviour,
  type Seen,
} from './channel-under-test.ts';
export { dialectSuite } from './dialect-suite.ts';
export type { DialectUnderTest, Row, RowRule, SqlSyntax, StoredRow } from './dialect-under-test.ts';
export { type HttpService, httpReceiver } from './http-receiver.ts';
export { type KeyValueFileUnderTest, keyValueFileSuite } from './key-value-file-suite.ts';
export { keyValueSyntax } from './key-value-syntax.ts';
export { type ModelUnderTest, modelSuite, type OpenModel, type ScriptedReply } from './model-suite.ts';
export { recordStoreSuite } from './record-store-suite.ts';
export { sqlSyntax } from './sql-syntax.ts';
export {
  type CaseOptions,
  ContractBroken,
  type DeclareCase,
  suite,
  type TestFunction,
  type UnderTest,
} from './suite.ts';
export type { StoreUnderTest, TestDatabase, TestStore } from './test-database.ts';
export type { HttpRequest } from './webhook-receiver.ts';
