import type { Delivery, Notice } from '../../../core/approval/channel.ts';
import type { PressResult } from '../../../core/approval/presses.ts';
import type { ApprovalRecord } from '../../../core/approval/request.ts';
import { CHANNEL } from '../../../examples/channel-slack/test/slack.ts';
import { postJson } from '../../../plugins/channels/post.ts';
import { parseFormDecision } from '../../../plugins/channels/press-endpoint.ts';
import { decisionText, escapeHtml, noticeText } from '../../../plugins/channels/request-text.ts';
import type { ChannelUnderTest } from '../channel-under-test.ts';
import { type ChannelFault, deliveringBy, pressedBy } from './wrong-slack.ts';

/** Channels that show what people wrote as it is, after the request itself was shown safely. */

const NOTICE = 'hostile text in a reminder or a report is harmless';
const SHOWN = 'hostile text in what a press shows is harmless';
const LIMIT = { maxLength: 1_000, escape: escapeHtml };

const messageOf = (text: string, more: object = {}): object => ({
  channel: CHANNEL,
  text,
  blocks: [{ type: 'section', text: { type: 'plain_text', text } }],
  ...more,
});

/** The Slack channel with other reminders and escalations. */
const remindingBy = (textOf: (notice: Notice, delivery: Delivery) => string): ChannelUnderTest =>
  deliveringBy((_channel, { api }) => ({
    async notify(delivery, notice, signal) {
      await postJson(`${api}/chat.postMessage`, messageOf(`${textOf(notice, delivery)} ${delivery.requestId}`), {
        signal,
      });
    },
  }));

/** The Slack channel with other reports. */
const reportingBy = (textOf: (record: ApprovalRecord) => string): ChannelUnderTest =>
  deliveringBy((_channel, { api }) => ({
    async onDecided(record, signal, receipts) {
      for (const ts of receipts) await postJson(`${api}/chat.update`, messageOf(textOf(record), { ts }), { signal });
    },
  }));

interface Payload {
  readonly user: { readonly name: string };
  readonly response_url: string;
}

/** The Slack channel with other answers to presses. */
const answeringBy = (textOf: (result: PressResult, person: string) => string): ChannelUnderTest =>
  pressedBy(() => ({
    async show(result, _press, body) {
      const { user, response_url } = parseFormDecision(body, 'payload') as Payload;
      await postJson(response_url, { text: textOf(result, user.name) }, { signal: AbortSignal.timeout(5_000) });
    },
  }));

const rolesOf = ({ to, missing }: Notice): string => [...to, ...missing].map(({ role }) => role).join(', ');

export const CHANNEL_TEXT_FAULTS: readonly ChannelFault[] = [
  {
    fault: 'does not escape markup in a reminder',
    detectedBy: [NOTICE],
    failure: /a role .*, in a notice: <!channel> was sent unescaped/,
    channel: remindingBy(noticeText),
  },
  {
    fault: 'shows the names of roles as they are written',
    detectedBy: [NOTICE],
    failure: /a role .*, in a notice: a person sees misleading characters/,
    channel: remindingBy((notice) => escapeHtml(rolesOf(notice))),
  },
  {
    fault: 'removes invisible characters from a reminder, and nothing else that misleads',
    detectedBy: [NOTICE],
    failure: /a role .*, in a notice: a person is misled by/,
    channel: remindingBy((notice) => escapeHtml(rolesOf(notice).replace(/[\p{C}\u200b]/gu, ''))),
  },
  {
    fault: 'removes markup from a reminder',
    detectedBy: [NOTICE],
    failure: /a role that may decide too, in a notice: the reader does not see the text <!channel>/,
    channel: remindingBy((notice) => noticeText(notice).replace(/<[^>]*>/g, '')),
  },
  {
    fault: 'does not escape the reason in a reminder',
    detectedBy: [NOTICE],
    failure: /the reason of the request, in a notice/,
    channel: remindingBy((notice, { reason }) => `${escapeHtml(noticeText(notice))}: ${reason}`),
  },
  {
    fault: 'does not escape markup in a report',
    detectedBy: [NOTICE],
    failure: /who approved, in a report: <!channel> was sent unescaped/,
    channel: reportingBy((record) => decisionText(record, { maxLength: LIMIT.maxLength })),
  },
  {
    fault: 'removes markup from a report',
    detectedBy: [NOTICE],
    failure: /who approved, in a report: the reader does not see the text <!channel>/,
    channel: reportingBy((record) => decisionText(record, LIMIT).replace(/&lt;.*?&gt;/g, '')),
  },
  {
    fault: 'shows the reason of a decision as it is written',
    detectedBy: [NOTICE],
    failure: /the reason of an approval, in a report: a person sees misleading characters/,
    channel: reportingBy((record) => `${decisionText(record, LIMIT)}\n${escapeHtml(record.decisionReason ?? '')}`),
  },
  {
    fault: 'does not escape markup in what a press shows',
    detectedBy: [SHOWN],
    failure: /the id of the person who pressed: <!channel> was sent unescaped/,
    channel: answeringBy(({ text }) => text),
  },
  {
    fault: 'shows the name of a person as it is written',
    detectedBy: [SHOWN],
    failure: /the name of the person who pressed: a person sees misleading characters/,
    channel: answeringBy(({ text }, person) => escapeHtml(`${person}: ${text}`)),
  },
  {
    fault: 'shows who decided before as it is written',
    detectedBy: [SHOWN],
    failure: /the id of the person who decided before: a person sees misleading characters/,
    channel: answeringBy(({ text, decided, record }) =>
      escapeHtml(decided ? text : `${text} It was decided by ${record?.decidedBy}.`),
    ),
  },
  {
    fault: 'shows the reason of an earlier decision as it is written',
    detectedBy: [SHOWN],
    failure: /a decision that was made elsewhere: a person sees misleading characters/,
    channel: answeringBy(({ text, record }) => escapeHtml(`${text} ${record?.decisionReason ?? ''}`)),
  },
];
