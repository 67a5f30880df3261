import type { Channel } from '../../core/approval/channel.ts';
import { displayJson } from '../../core/display/json.ts';
import { displayText } from '../../core/display/text.ts';
import { definePlugin } from '../../core/plugin.ts';
import { noticeText } from './request-text.ts';

/** Writes requests and decisions to a terminal or log. */
export function consoleChannel(write: (line: string) => void): Channel {
  return {
    name: 'console',
    async deliver({ requestId, agentTag, tool, parameters, reason, timeout, product, env }) {
      const [agent, call] = [displayText(agentTag), displayText(tool)];
      const place = `${displayText(product)}, ${displayText(env)}`;
      write(`approval needed  ${agent} wants to call ${call} in ${place}: ${displayText(reason)}`);
      write(displayJson(parameters));
      write(`${call} for ${agent} in ${place}, before ${timeout}: svc approvals approve ${requestId}  (or reject)`);
    },
    async notify({ requestId, agentTag, tool, timeout }, notice) {
      const [agent, call] = [displayText(agentTag), displayText(tool)];
      write(`approval needed  ${noticeText(notice)}: ${agent} wants to call ${call}, before ${timeout}`);
      write(`svc approvals show ${requestId}`);
    },
    async onDecided({ requestId, status, cause, decidedBy }) {
      const who = cause === 'timeout' ? 'timeout' : decidedBy;
      write(`approval ${requestId} is ${status}${who === undefined ? '' : ` by ${displayText(who)}`}`);
    },
  };
}

export default definePlugin({
  name: 'console',
  apply(kernel) {
    kernel.channels.register('console', () => consoleChannel((line) => process.stderr.write(`${line}\n`)));
  },
});
