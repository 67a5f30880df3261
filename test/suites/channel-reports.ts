import * as assert from 'node:assert/strict';
import type { Channel, Notice } from '../../core/approval/channel.ts';
import type { ApprovalRecord } from '../../core/approval/request.ts';
import type { Json } from '../../core/json.ts';
import { frozenClone } from '../../core/tool/safe-json.ts';
import { decisionRecord, delivery, notice, signal, storedReceipts, TOKEN } from './channel-fixtures.ts';
import {
  type ChannelMessage,
  type ChannelReceiver,
  type ChannelUnderTest,
  containsText,
} from './channel-under-test.ts';
import { assertHarmless, assertShown, hostileTexts } from './harmless-text.ts';
import type { DeclareCase } from './suite.ts';

interface ReportCase {
  withReceiver(body: (receiver: ChannelReceiver, tested: Channel) => Promise<void>): Promise<void>;
  createChannel(options: ChannelReceiver['options']): Channel;
}

/** Declares what a channel must do with reminders and decisions, apart from that they arrive. */
export function declareReportCases(
  on: DeclareCase,
  channel: ChannelUnderTest,
  { withReceiver, createChannel }: ReportCase,
): void {
  on(
    'a decision is reported, also by a process that did not deliver the request',
    () =>
      withReceiver(async (receiver, tested) => {
        assert.ok(
          tested.onDecided,
          'the channel has no onDecided(): implement it, or skip this case with the reason why decisions are not reported',
        );
        // Another message before and after it: a report must concern the one of its receipt.
        const deliverOther = async (id: string) =>
          storedReceipts(await tested.deliver(delivery({ orderId: '9', amount: 9 }, `apr_other-${id}`), signal()));
        const others = [await deliverOther('first')];
        const receipts = storedReceipts(await tested.deliver(delivery(), signal()));
        others.push(await deliverOther('last'));
        for (const secret of [...receiver.secrets, TOKEN]) {
          assert.ok(
            !JSON.stringify(receipts).includes(secret),
            'what deliver() returned, and is stored, contains a secret',
          );
        }
        const allReceipts = [receipts, ...others];
        const report = async (by: Channel, status: ApprovalRecord['status'], of = receipts) => {
          const before = receiver.received().length;
          await by.onDecided?.(decisionRecord(status), signal(), of);
          const reports = receiver.received().slice(before);
          const ids = ownIds(of, allReceipts);
          for (const { raw } of reports)
            assert.ok(
              ids.length === 0 || ids.some((id) => containsWhole(raw, id)),
              `a report edits another message: it has no id of its receipt ${JSON.stringify(of)}`,
            );
          return reports;
        };
        const approval = await report(tested, 'approved');
        const other = createChannel(receiver.options);
        for (const otherReceipts of receipts.length > 0 ? others : []) {
          assert.notDeepEqual(
            otherReceipts,
            receipts,
            'deliver() returned the same receipt for two messages: the receiver must give every message its own id',
          );
          const [about] = await report(other, 'approved', otherReceipts);
          assert.notEqual(about?.raw, approval[0]?.raw, 'a report does not concern the message of its receipt');
        }
        const decisions = [...approval, ...(await report(other, 'rejected'))];
        const reports = [...decisions, ...(await report(other, 'cancelled'))];
        assert.equal(reports.length, 3, 'not every decision was reported once');
        const texts = new Set(reports.map(({ displayed }) => displayed));
        assert.equal(texts.size, reports.length, 'two different decisions look the same');
        for (const message of reports)
          assert.ok(containsText(message, delivery().requestId), 'a report does not contain the request id');
        for (const { displayed } of decisions)
          assert.match(displayed, /(?<![a-z])ada(?![a-z])/i, `a report does not show who decided: ${displayed}`);
      }),
    {
      promise:
        'onDecided() reports every decision, with who made it. All that it knows of the delivery is what deliver() returned, which is stored.',
    },
  );

  on(
    'a report reaches every message of its request',
    () =>
      withReceiver(async (receiver, tested) => {
        // The case about reports fails without it.
        if (!tested.onDecided) return;
        const receipts: Json[] = [];
        // As after a crash, which lost the record of the first delivery.
        for (let attempt = 0; attempt < 2; attempt += 1)
          receipts.push(...storedReceipts(await tested.deliver(delivery(), signal())));
        if (tested.notify)
          receipts.push(...storedReceipts(await tested.notify(delivery(), notice('reminder'), signal(), receipts)));
        const before = receiver.received().length;
        await createChannel(receiver.options).onDecided?.(decisionRecord('approved'), signal(), receipts);
        const reports = receiver.received().slice(before);
        const all = receipts.map((receipt) => [receipt]);
        for (const of of all) {
          const ids = ownIds(of, all);
          assert.ok(
            ids.length === 0 || reports.some(({ raw }) => ids.some((id) => containsWhole(raw, id))),
            `the message with the receipt ${JSON.stringify(of[0])}, one of ${all.length}, was not updated: its buttons are left`,
          );
        }
      }),
    {
      promise:
        'onDecided() updates the message of each receipt: there are several if a crash repeated the delivery, or if notify() returns one.',
    },
  );

  on(
    'hostile text in a reminder or a report is harmless',
    () =>
      withReceiver(async (receiver, tested) => {
        const receipts = storedReceipts(await tested.deliver(delivery(), signal()));
        const messagesOf = async (send: () => unknown): Promise<readonly ChannelMessage[]> => {
          const before = receiver.received().length;
          await send();
          return receiver.received().slice(before);
        };
        const assertWhole = (message: ChannelMessage, what: string) => {
          if (!message.displayed.includes('…')) assertShown(channel, message, what);
        };
        const hostile = hostileTexts(channel).join(' ');
        for (const { name, isShown, request, fields } of hostileNotices(hostile)) {
          for (const kind of ['reminder', 'escalation'] as const) {
            const given = { ...notice(kind), ...fields };
            const about = frozenClone(kind === 'reminder' ? { ...given, to: [] } : given);
            const messages = await messagesOf(() =>
              tested.notify?.(frozenClone({ ...delivery(), ...request }), about, signal(), receipts),
            );
            for (const message of messages) {
              assertHarmless(channel, message, `${name}, in a notice`);
              if (isShown && kind === 'escalation') assertWhole(message, `${name}, in a notice`);
            }
          }
        }
        for (const { name, isShown, status, fields } of hostileRecords(hostile)) {
          const record = frozenClone({ ...decisionRecord(status), ...fields });
          for (const message of await messagesOf(() => tested.onDecided?.(record, signal(), receipts))) {
            assertHarmless(channel, message, `${name}, in a report`);
            if (isShown) assertWhole(message, `${name}, in a report`);
          }
        }
      }),
    {
      promise:
        channel.reader === 'person'
          ? 'Names of people and roles, and the reasons of decisions, are written by people: notify() and onDecided() show and escape them as deliver() does.'
          : 'A program receives every text unchanged, also in a notice and a report.',
    },
  );
}

/** Whether a message must show the text. */
interface HostileField<Fields> {
  readonly name: string;
  readonly isShown?: boolean;
  readonly fields?: Partial<Fields>;
}

/** Notices with one hostile text each: a title is shortened, and would not show several. */
function hostileNotices(text: string): readonly (HostileField<Notice> & { readonly request?: object })[] {
  const role = `heads ${text}`;
  return [
    { name: 'a role that may decide too', isShown: true, fields: { to: [{ role, members: ['group:heads'] }] } },
    { name: 'a member of a role', fields: { to: [{ role: 'heads', members: [`ada ${text}`] }] } },
    { name: 'a role whose approval is missing', fields: { missing: [{ role, count: 1 }] } },
    { name: 'the reason of the request', request: { reason: text } },
    { name: 'the agent', request: { agentTag: text } },
    { name: 'the tool', request: { tool: text } },
    { name: 'a parameter', request: { parameters: { note: text } } },
  ];
}

type Decided = ApprovalRecord['status'];

/** Decisions with one hostile text each. */
function hostileRecords(text: string): readonly (HostileField<ApprovalRecord> & { readonly status: Decided })[] {
  const decidedBy = `ada ${text}`;
  return [
    { name: 'who approved', isShown: true, status: 'approved', fields: { decidedBy } },
    { name: 'who rejected', isShown: true, status: 'rejected', fields: { decidedBy } },
    { name: 'who cancelled', status: 'cancelled', fields: { decidedBy } },
    { name: 'the reason of an approval', status: 'approved', fields: { decisionReason: text } },
    { name: 'the reason of a rejection', status: 'rejected', fields: { decisionReason: text } },
    { name: 'the reason of a cancellation', status: 'cancelled', fields: { decisionReason: text } },
    { name: 'a changed parameter', status: 'approved', fields: { modifiedParams: { note: text } } },
    { name: 'a parameter', status: 'rejected', fields: { parameters: { note: text } } },
    { name: 'the reason of the request', status: 'approved', fields: { reason: text } },
    { name: 'the agent', status: 'approved', fields: { agentTag: text } },
    { name: 'the tool', status: 'approved', fields: { tool: text } },
  ];
}

/** The texts and numbers in receipts that no other of them has. */
function ownIds(of: readonly Json[], all: readonly (readonly Json[])[]): readonly string[] {
  const others = all.filter((receipts) => receipts !== of).flatMap(valuesIn);
  return valuesIn(of).filter((value) => !others.includes(value));
}

function valuesIn(json: Json | readonly Json[]): readonly string[] {
  if (typeof json === 'string' || typeof json === 'number') return [String(json)];
  return typeof json === 'object' && json !== null ? Object.values(json).flatMap(valuesIn) : [];
}

/** Whether a text contains an id that is not a part of a longer one. */
const containsWhole = (text: string, id: string): boolean =>
  text
    .split(id)
    .some((part, index, parts) => index > 0 && !/[\w.-]$/.test(parts[index - 1] ?? '') && !/^[\w-]/.test(part));
