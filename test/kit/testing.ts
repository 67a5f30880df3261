/**
 * The suites that say whether a plugin of yours does what its contract asks for.
 * @module @svc/sdk/testing
 */

export type { StoreHome } from '../../core/approval/home.ts';
export { approvalSuite } from './approval-suite.ts';
export { type BrokerMessage, type BrokerOutside, type BrokerUnderTest, brokerSuite } from './broker-suite.ts';
export {
  type Behaviour,
  type ChannelMessage,
  type ChannelReceiver,
  type ChannelUnderTest,
  channelSuite,
  PAUSE_SECONDS,
} from './channel-suite.ts';
export { type DialectUnderTest, dialectSuite, type Row, type Words } from './dialect.ts';
export type { Fresh } from './fresh.ts';
export { type HttpService, httpReceiver } from './http-receiver.ts';
export { type ModelSays, type ModelUnderTest, modelSuite, type OpenModel } from './model-suite.ts';
export type { Place, StoreUnderTest } from './place.ts';
export { recordStoreSuite } from './record-store.ts';
export { sqlWords } from './sql-words.ts';
export { type Case, type CaseOptions, ContractBroken, suite, type TestFunction, type UnderTest } from './suite.ts';
