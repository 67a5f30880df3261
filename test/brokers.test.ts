import * as assert from 'node:assert/strict';
import { ownBroker, ownBrokerMissing } from './kit/own-rabbitmq.ts';
import { onOwnServer, rabbitmqUnderTest } from './kit/rabbitmq.ts';
import { test } from './kit/test.ts';
import { RESTART } from './suites/broker-restart-case.ts';
import { brokerSuite } from './suites/broker-suite.ts';
import type { BrokerUnderTest } from './suites/broker-under-test.ts';
import { withBrokerFault } from './suites/wrong/broker-fault.ts';
import { RESTART_FAULT } from './suites/wrong/broker-faults.ts';

brokerSuite(test, rabbitmqUnderTest);

const RESTARTED =
  'rabbitmq: messages survive a restart of a server of its own, and what is not persistent is found out';
const missing = ownBrokerMissing();
if (missing !== undefined) test.skip(RESTARTED, missing);
else
  test(
    RESTARTED,
    async () => {
      const own = await ownBroker();
      try {
        await own.start();
        const right = onOwnServer(own);
        await restartCase(right);
        await assert.rejects(restartCase(withBrokerFault(right, RESTART_FAULT)), RESTART_FAULT.failure);
      } finally {
        await own.remove();
      }
    },
    { timeoutMs: 600_000 },
  );

/** Runs that case of the suite alone. */
async function restartCase(tested: BrokerUnderTest): Promise<void> {
  const cases: (() => Promise<void>)[] = [];
  brokerSuite((name, body) => void (name.endsWith(RESTART) && cases.push(body)), tested);
  const [run] = cases;
  assert.ok(run);
  await run();
}
