// A process with a gate of its own that does what it is told and can be told to die: `gate-process.ts <url> [<where>]`.
import pg from 'pg';
import { newRequestId } from '../../core/approval/request.ts';
import { isSvcError } from '../../core/errors.ts';
import { Kernel } from '../../core/kernel.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { approve, createGate, openApprovalProcess, reject, compileTestTools } from '../suites/approval-setup.ts';
import type { Order, Report } from './gate-processes.ts';

const [url = '', where = ''] = process.argv.slice(2);
const [place, count] = where.split(':');
let reached = 0;

/** Dies by SIGKILL: nothing of this process gets to say good-bye. */
function die(at: string): void {
  if (at !== place) return;
  reached += 1;
  if (reached === Number(count ?? 1)) process.kill(process.pid, 'SIGKILL');
}

/** Dies before or after its n-th write to the table of approvals, or before its n-th call to the store. */
function mortal<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, name) {
      const member = Reflect.get(object, name, object);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (name === 'records') return mortal(member.apply(object, args));
        die('store');
        const result = member.apply(object, args);
        if (name !== 'insert' && name !== 'replace') return result;
        return result.then((answer: unknown) => {
          die('written');
          return answer;
        });
      };
    },
  });
}

const effects = new pg.Client({ connectionString: url });
await effects.connect();
const kernel = new Kernel();
kernel.hooks.approvalRequested.tap('test', () => die('announced'));
kernel.hooks.approvalDecided.tap('test', () => die('decided'));
const office = await openApprovalProcess(mortal(await postgresql.connect(url, {})), kernel);

const pay = {
  tag: 'refund',
  description: 'Pays money back to a customer.',
  requiresConfirmation: true,
  parameters: { order: { type: 'string', required: true }, amount: { type: 'number', required: true } },
  handler: async (ctx: { requestId?: string | undefined; idempotencyKey: string }) => {
    die('claimed');
    await effects.query(`INSERT INTO effects VALUES ($1, $2, $3)`, [ctx.requestId, ctx.idempotencyKey, process.pid]);
    die('ran');
    return 'paid';
  },
} as const;
const gate = createGate(office, compileTestTools(pay), { leaseMs: 2_000 });
const idempotent = createGate(office, compileTestTools({ ...pay, idempotent: true }), { leaseMs: 2_000 });

async function follow(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'id':
      return newRequestId();
    case 'call':
      return (order.idempotent ? idempotent : gate).call(order.call, { resumed: order.resumed ?? false });
    case 'approve':
      return approve(office, order.request, order.modifiedParams);
    case 'reject':
      return reject(office, order.request);
  }
}

process.on('message', (order: Order & { readonly number: number }) => {
  const report = (result: Report) => process.send?.({ ...result, number: order.number });
  follow(order).then(
    (value) => {
      die('recorded');
      report({ value });
    },
    (error: unknown) => report({ refused: isSvcError(error) ? error.code : String(error) }),
  );
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
