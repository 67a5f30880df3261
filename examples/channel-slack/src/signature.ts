import { createHmac, timingSafeEqual } from 'node:crypto';

/** Seconds; what is older may be a recording. */
const WINDOW = 300;

/** Whether Slack sent this, just now: https://api.slack.com/authentication/verifying-requests-from-slack */
export function isFromSlack(headers: Headers, body: string, signingSecret: string): boolean {
  const timestamp = headers.get('x-slack-request-timestamp') ?? '';
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > WINDOW) return false;
  const right = Buffer.from(
    `v0=${createHmac('sha256', signingSecret).update(`v0:${timestamp}:${body}`).digest('hex')}`,
  );
  const given = Buffer.from(headers.get('x-slack-signature') ?? '');
  return given.length === right.length && timingSafeEqual(given, right);
}
