import { rabbitmqUnderTest } from './kit/rabbitmq.ts';
import { test } from './kit/test.ts';
import { brokerSuite } from './suites/broker-suite.ts';

brokerSuite(test, rabbitmqUnderTest);
