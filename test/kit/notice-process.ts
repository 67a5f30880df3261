// A process whose call waits, and whose channel stores each notice: `notice-process.ts <url> <rules> <request id> [<kill point>]`.
import pg from 'pg';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { Bank, compileTestTools, createGate, openApprovalProcess, refund } from '../suites/approval-setup.ts';
import { killSwitch } from './kill-switch.ts';

const [url = '', rules = '[]', requestId = '', killPoint] = process.argv.slice(2);
const { killAt, killable } = killSwitch(killPoint);
const sent = new pg.Client({ connectionString: url });
await sent.connect();
const app = await openApprovalProcess(killable(await postgresql.connect(url, {})), undefined, JSON.parse(rules));
const route = {
  channel: 'chat',
  deliver: async () => undefined,
  async notify(_: unknown, { id }: { readonly id: string }) {
    killAt('notified');
    await sent.query('INSERT INTO sent VALUES ($1)', [id]);
    killAt('sent');
  },
};
const gate = createGate(app, compileTestTools(new Bank().tool()), { routes: [route] });
process.on('disconnect', () => process.exit());
await gate.call(refund(undefined, { requestId, executionId: 'exe_1', toolCallId: 'call_1' }));
