import * as assert from 'node:assert/strict';
import { type Decided, type Delivery, type Notice, storableReceipt } from '../../core/approval/channel.ts';
import type { ApprovalRecord } from '../../core/approval/request.ts';
import type { Json } from '../../core/json.ts';
import type { ToolParameters as CallParameters } from '../../core/tool/parameters.ts';
import { frozenClone } from '../../core/tool/safe-json.ts';
import type { ChannelMessage, ChannelReceiver } from './channel-under-test.ts';

/** What the channel suite delivers, reminds of and reports. */

export const TOKEN = 'v1.a-token-that-decides';
/** Where the service sends presses: below the callback base of the client under test, by the name of its channel. */
export const TESTED_PRESS_URL = 'https://shop.example/svc/channels/tested';
/** That of a second channel of the client. */
export const OTHER_PRESS_URL = 'https://shop.example/svc/channels/other';
/** ANSI, a text direction override, a zero-width space, a null, a tag character: all of them invisible. */
export const UNSAFE_TEXTS = ['\u001b[2Jgone', '\u202etxt.exe', 'pay\u200bpal', 'nul\u0000l', 'tag\u{e0041}ged'];

export function delivery(
  parameters: CallParameters = { orderId: '1234', amount: 20 },
  requestId = 'apr_01939a51-2b30-7aa0-8f0e-0e3d2a5a9c11',
): Delivery {
  return frozenClone({
    requestId,
    executionId: 'exe_01939a51-2b30-7aa0-8f0e-0e3d2a5a9c12',
    agentTag: 'payouts',
    tool: 'refund',
    parameters,
    reason: 'The tool asks for confirmation.',
    timestamp: new Date().toISOString(),
    timeout: new Date(Date.now() + 300_000).toISOString(),
    product: 'acme',
    env: 'staging',
    expiresInMs: 300_000,
    description: 'Pays money back.',
    token: TOKEN,
    callbackUrl: `https://shop.example/svc/approvals/${requestId}/respond?token=${TOKEN}`,
    pressUrl: TESTED_PRESS_URL,
  });
}

export function notice(kind: Notice['kind']): Notice {
  return frozenClone({
    id: `${delivery().requestId}_1`,
    kind,
    at: new Date().toISOString(),
    to: kind === 'escalation' ? [{ role: 'heads', members: ['group:heads'] }] : [],
    missing: [{ role: 'finance', count: 1 }],
  });
}

export function decisionRecord(status: ApprovalRecord['status']): Decided {
  const { expiresInMs, description, token, callbackUrl, pressUrl, ...request } = delivery();
  const at = request.timestamp;
  return frozenClone({
    ...request,
    toolDigest: 't2.x',
    status,
    ...(status === 'rejected' && { cause: 'human' as const }),
    run: 'none',
    decidedAt: at,
    decidedBy: 'ada',
    events: [{ type: 'requested', at }],
  });
}

/** What `onDecided` receives after one delivery that returned `value`. */
export function storedReceipts(value: unknown): readonly Json[] {
  const stored = storableReceipt(value);
  assert.ok('receipt' in stored, 'what deliver() returned is not JSON of at most 4 KiB');
  return stored.receipt === null ? [] : [stored.receipt];
}

/** The timeout that the gate sets for an attempt. */
export const signal = (): AbortSignal => AbortSignal.timeout(15_000);

export function onlyMessage(receiver: ChannelReceiver): ChannelMessage {
  const messages = receiver.received();
  assert.equal(messages.length, 1, `one attempt sent ${messages.length} messages`);
  return messages[0] as ChannelMessage;
}
