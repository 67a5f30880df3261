// A process with a gate that executes commands and kills itself at a given point: `gate-process.ts <url> [<point>]`.
import pg from 'pg';
import { newRequestId } from '../../core/approval/request.ts';
import { isSvcError } from '../../core/errors.ts';
import { Kernel } from '../../core/kernel.ts';
import { dynamodb } from '../../plugins/dialects/dynamodb/dialect.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { approve, compileTestTools, createGate, openApprovalProcess, reject } from '../suites/approval-setup.ts';
import type { GateCommand, GateReply } from './gate-processes.ts';
import { killSwitch } from './kill-switch.ts';

const [url = '', killArgument = ''] = process.argv.slice(2);
const { killAt, killable } = killSwitch(killArgument);

const isDynamodb = url.startsWith('dynamodb:');
const effects = new pg.Client({ connectionString: url });
// Without it, a call of this process cannot run: only others make them.
if (!isDynamodb) await effects.connect();
const kernel = new Kernel();
kernel.hooks.approvalRequested.tap('test', () => killAt('announced'));
kernel.hooks.approvalDecided.tap('test', () => killAt('decided'));
const app = await openApprovalProcess(killable(await (isDynamodb ? dynamodb : postgresql).connect(url, {})), kernel);

const pay = {
  tag: 'refund',
  description: 'Pays money back to a customer.',
  requiresConfirmation: true,
  parameters: { order: { type: 'string', required: true }, amount: { type: 'number', required: true } },
  handler: async (ctx: { requestId?: string | undefined; idempotencyKey: string }) => {
    killAt('claimed');
    await effects.query(`INSERT INTO effects VALUES ($1, $2, $3)`, [ctx.requestId, ctx.idempotencyKey, process.pid]);
    killAt('ran');
    return 'paid';
  },
} as const;
const gate = createGate(app, compileTestTools(pay), { leaseMs: 2_000 });
const ungated = {
  disabled: createGate(app, compileTestTools(pay), { humanInLoop: { enabled: false } }),
  unconfirmed: createGate(app, compileTestTools({ ...pay, requiresConfirmation: false })),
};
const idempotent = createGate(app, compileTestTools({ ...pay, idempotent: true }), { leaseMs: 2_000 });

async function execute(command: GateCommand): Promise<unknown> {
  switch (command.do) {
    case 'id':
      return newRequestId();
    case 'call':
      if (command.ungated) return ungated[command.ungated].call(command.call);
      return (command.idempotent ? idempotent : gate).call(command.call, { resumed: command.resumed ?? false });
    case 'approve':
      return approve(app, command.request, command.modifiedParams, command.options);
    case 'reject':
      return reject(app, command.request, undefined, command.options);
  }
}

process.on('message', (command: GateCommand & { readonly number: number }) => {
  const report = (result: GateReply) => process.send?.({ ...result, number: command.number });
  execute(command).then(
    (value) => {
      killAt('recorded');
      report({ value });
    },
    (error: unknown) => report({ error: isSvcError(error) ? error.code : String(error) }),
  );
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
