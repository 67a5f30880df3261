import * as assert from 'node:assert/strict';
import { slackUnderTest } from '../examples/channel-slack/test/slack.ts';
import { mapConcurrently } from './kit/map-concurrently.ts';
import { rabbitmqUnderTest } from './kit/rabbitmq.ts';
import { test } from './kit/test.ts';
import { brokerSuite } from './suites/broker-suite.ts';
import { channelSuite } from './suites/channel-suite.ts';
import type { TestFunction } from './suites/suite.ts';
import { withBrokerFault } from './suites/wrong/broker-fault.ts';
import { BROKER_FAULTS } from './suites/wrong/broker-faults.ts';
import { BROKER_QUEUE_FAULTS } from './suites/wrong/broker-queue-faults.ts';
import { CHANNEL_FAULTS, RIGHT_CHANNELS } from './suites/wrong/channel-faults.ts';
import { CHANNEL_PRESS_FAULTS } from './suites/wrong/channel-press-faults.ts';
import { CHANNEL_TEXT_FAULTS } from './suites/wrong/channel-text-faults.ts';

/**
 * The suites detect wrong channels and brokers: each must fail, by the case about its fault. The right channel passes;
 * that the right broker does is tested in brokers.test.ts.
 */

interface Trial {
  readonly fault: string;
  readonly declare: (test: TestFunction) => void;
  readonly detectedBy: string;
  readonly failure: RegExp;
}

/** Runs the case that must detect a fault. Returns what is wrong with its result, or undefined. */
async function missed({ fault, declare, detectedBy, failure }: Trial): Promise<string | undefined> {
  const cases = new Map<string, () => Promise<void>>();
  declare((title, body) => cases.set(title.slice(title.indexOf(': ') + 2), body));
  const run = cases.get(detectedBy);
  if (!run) return `the suite has no case "${detectedBy}"`;
  const message = await run().then(
    () => 'it passed',
    (error: Error) => error.message,
  );
  return failure.test(message) ? undefined : `${fault}: ${detectedBy}: ${message}`;
}

async function assertDetected(trials: readonly Trial[]): Promise<void> {
  const results = await mapConcurrently(trials, missed);
  assert.deepEqual(
    results.filter((result) => result !== undefined),
    [],
  );
}

channelSuite(test, slackUnderTest);

test('the suite detects every wrong channel', () =>
  assertDetected(
    [...CHANNEL_FAULTS, ...CHANNEL_PRESS_FAULTS, ...CHANNEL_TEXT_FAULTS].flatMap(({ detectedBy, channel, ...fault }) =>
      detectedBy.map((name) => ({ ...fault, detectedBy: name, declare: (test) => channelSuite(test, channel) })),
    ),
  ));

test('a text of markup that no message can show is rejected when the suite starts, with the reason', () => {
  const declare = (...markup: string[]) =>
    channelSuite(() => assert.fail('a case was declared'), { ...slackUnderTest, markup });
  assert.throws(
    () => declare('<!channel>', '```\n@all'),
    /slack: markup contains "```\\n@all", but .* write it as ```\\n@all/,
  );
  assert.throws(() => declare('zero\u200bwidth'), /write it as zero\\u\{200b\}width/);
});

test('a channel with the proof of a press in the body, and one with markup that has no effect, pass', () =>
  assertDetected(
    RIGHT_CHANNELS.flatMap(({ channel, passes }) =>
      passes.map((name) => ({
        ...{ fault: 'none', detectedBy: name, failure: /^it passed$/ },
        declare: (test) => channelSuite(test, channel),
      })),
    ),
  ));

const WRONG_BROKERS = 'the suite detects every wrong broker';
if (rabbitmqUnderTest.skip !== undefined) test.skip(WRONG_BROKERS, rabbitmqUnderTest.skip);
else {
  test(WRONG_BROKERS, () =>
    assertDetected(
      [...BROKER_FAULTS, ...BROKER_QUEUE_FAULTS].map((fault) => {
        const wrong = withBrokerFault(rabbitmqUnderTest, fault);
        return { ...fault, declare: (test) => brokerSuite(test, wrong) };
      }),
    ),
  );
}
