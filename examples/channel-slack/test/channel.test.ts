import { test } from 'node:test';
import { channelSuite } from '@svc/sdk/testing';
import { slackUnderTest } from './slack.ts';

channelSuite(test, slackUnderTest);
