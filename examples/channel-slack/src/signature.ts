import { createHmac, timingSafeEqual } from 'node:crypto';

/** Seconds. An older request may be a replay. */
const MAX_AGE = 300;

/** Whether Slack sent this request recently: https://api.slack.com/authentication/verifying-requests-from-slack */
export function isFromSlack(headers: Headers, body: Uint8Array, signingSecret: string): boolean {
  const timestamp = headers.get('x-slack-request-timestamp') ?? '';
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > MAX_AGE) return false;
  const expected = Buffer.from(
    `v0=${createHmac('sha256', signingSecret).update(`v0:${timestamp}:`).update(body).digest('hex')}`,
  );
  const given = Buffer.from(headers.get('x-slack-signature') ?? '');
  return given.length === expected.length && timingSafeEqual(given, expected);
}
