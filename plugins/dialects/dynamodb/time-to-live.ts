import { setTimeout as wait } from 'node:timers/promises';
import type { TimeToLiveDescription } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import type { Api } from './api.ts';
import { isMissing } from './errors.ts';
import type { Work } from './move.ts';

const AGAIN_MS = 200;

export async function timeToLive(api: Api, name: string): Promise<TimeToLiveDescription | undefined> {
  try {
    return (await api.send('DescribeTimeToLive', { TableName: name })).TimeToLiveDescription;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Looks first: to say again what is so already is an error. AWS takes up to an hour to enable it, which counts as done. */
export async function setTimeToLive({ api, hold }: Work, name: string, field: string): Promise<void> {
  for (;;) {
    await hold();
    const now = await timeToLive(api, name);
    const on = now?.TimeToLiveStatus === 'ENABLED' || now?.TimeToLiveStatus === 'ENABLING';
    if (on && now?.AttributeName === field) return;
    if (on) {
      throw new SvcError('table_differs', `The time to live of "${name}" counts by "${now?.AttributeName}".`, {
        next: ['Disable it, wait an hour, and let the migration go on.'],
      });
    }
    const input = { TableName: name, TimeToLiveSpecification: { Enabled: true, AttributeName: field } };
    if (now?.TimeToLiveStatus !== 'DISABLING' && (await api.attempt('UpdateTimeToLive', input)) !== 'unknown') return;
    await wait(AGAIN_MS);
  }
}
