import * as assert from 'node:assert/strict';
import { compileRules } from '../../config/load/approval-rules.ts';
import type { DeliveryRoute } from '../../core/approval/announce.ts';
import type { Notice } from '../../core/approval/channel.ts';
import type { StoredRule } from '../../core/approval/rule.ts';
import { type ApprovalProcess, type Bank, compileTestTools, createGate, readRow } from '../suites/approval-setup.ts';

// What the tests of reminders and escalations share.

export const roles = { finance: ['group:finance'], heads: ['group:heads'], owners: ['user:olga'] };
export const MINUTE = 60_000;
export const person = (id: string, ...groups: string[]) => ({ principal: { id, groups } });
export const ann = person('ann', 'finance');
export const hal = person('hal', 'heads');

export function rulesOf(times: Pick<StoredRule, 'remind' | 'escalate'>, count = 1): readonly StoredRule[] {
  const { rules, problems } = compileRules({ roles, rules: [{ approve: [{ role: 'finance', count }] }] });
  assert.deepEqual(problems, []);
  return rules.map((rule) => ({ ...rule, ...times }));
}

export const toHeads = (afterMs: number) => ({ role: 'heads', members: roles.heads, afterMs });
export const toOwners = (afterMs: number) => ({ role: 'owners', members: roles.owners, afterMs });

/** A route, and what it was asked to send. */
export function recording(channel = 'chat') {
  const sent: (Notice | 'request')[] = [];
  const route: DeliveryRoute = {
    channel,
    deliver: async () => {
      sent.push('request');
      return `message of ${channel}`;
    },
    notify: async (_announcement, notice, _signal, receipts) => {
      assert.deepEqual(receipts, [`message of ${channel}`]);
      sent.push(notice);
    },
  };
  const kinds = () => sent.map((one) => (one === 'request' ? one : one.kind));
  return { route, sent, kinds };
}

/** A route on which only notices do something. */
export const noticeRoute = (channel: string, notify: NonNullable<DeliveryRoute['notify']>): DeliveryRoute => ({
  channel,
  deliver: async () => undefined,
  notify,
});

export const eventsOf = async (app: ApprovalProcess, request: { readonly requestId: string }) =>
  (await readRow(app, request)).record.body.events.map(({ type, as }) => (as === undefined ? type : `${type} ${as}`));

export const gateOf = (app: ApprovalProcess, bank: Bank, routes: readonly DeliveryRoute[]) =>
  createGate(app, compileTestTools(bank.tool()), { routes });
