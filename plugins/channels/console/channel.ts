import type { Channel } from '../../../core/approval/channel.ts';
import { displayed, displayedJson } from '../../../core/approval/display.ts';

/** Says on a terminal, or in a log, who asks for what and how it is decided. */
export function consoleChannel(write: (line: string) => void): Channel {
  return {
    name: 'console',
    async deliver({ requestId, agentTag, tool, parameters, reason, timeout }) {
      write(`approval needed  ${displayed(agentTag)} wants to call ${displayed(tool)}: ${displayed(reason)}`);
      write(displayedJson(parameters));
      write(`svc approvals approve ${requestId}    or reject, until ${timeout}`);
    },
    async decided({ requestId, status, cause, decidedBy }) {
      const who = cause === 'timeout' ? 'time-out' : decidedBy;
      write(`approval ${requestId} is ${status}${who === undefined ? '' : ` by ${displayed(who)}`}`);
    },
  };
}
