import { brokerCases } from './broker-case.ts';
import { declareCloseCases } from './broker-close-cases.ts';
import { declareConsumerCases, LEASE } from './broker-consumer-cases.ts';
import { declareEventCases } from './broker-event-cases.ts';
import { declareGateCases } from './broker-gate-cases.ts';
import { declarePublishCases } from './broker-publish-cases.ts';
import { declareQueueCases } from './broker-queue-cases.ts';
import { declareRestartCase, RESTART } from './broker-restart-case.ts';
import type { BrokerUnderTest } from './broker-under-test.ts';
import { suite, type TestFunction } from './suite.ts';

/** Tests that a message broker fulfills its contract. */
export function brokerSuite(test: TestFunction, tested: BrokerUnderTest): void {
  const { leaseMs = 0, restart, skip } = tested;
  const skipped =
    typeof skip === 'string'
      ? skip
      : {
          ...(leaseMs === 0 && { [LEASE]: 'no leaseMs: the server has no leases' }),
          ...(!restart && { [RESTART]: 'no restart(): whether messages are durable is not checked' }),
          ...skip,
        };
  const cases = brokerCases(tested);
  suite(test, { name: tested.name, skip: skipped }, (on) => {
    declareEventCases(on, cases);
    declarePublishCases(on, cases);
    declareQueueCases(on, cases);
    declareConsumerCases(on, cases);
    declareRestartCase(on, cases);
    declareCloseCases(on, cases);
    declareGateCases(on, cases);
  });
}
