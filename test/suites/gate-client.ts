import { Svc } from '../../config/sdk/index.ts';
import type { ApprovalsConfig, Config } from '../../config/define.ts';
import type { Gate } from '../../config/sdk/gate.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';

export const CALLBACK_KEY = 'a key for tests, of thirty-two bytes or more';
export const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

export interface GateUnderTest {
  readonly svc: Svc;
  readonly gate: Gate;
  /** What the tool was called with. */
  readonly refunds: unknown[];
  /** Puts a call to the gate: what was asked, and how it ends. */
  refund(
    parameters?: object,
  ): Promise<{ readonly request: ApprovalRequest; readonly outcome: Promise<{ status: string; result: unknown }> }>;
}

interface Setup {
  readonly approvals?: ApprovalsConfig;
  readonly config?: Config;
  readonly humanInLoop?: object;
}

/** A client whose one tool needs a human, in memory unless the configuration says otherwise. */
export async function withGate(
  { approvals, config, humanInLoop }: Setup,
  body: (gate: GateUnderTest) => Promise<void>,
): Promise<void> {
  const svc = new Svc({
    config: {
      product: 'shop',
      env: 'dev',
      ...config,
      approvals: { callbackBase: 'https://shop.example/svc', callbackKey: CALLBACK_KEY, ...approvals },
    },
  });
  const refunds: unknown[] = [];
  const gate = svc.gate({
    agentTag: 'payouts',
    tools: [
      {
        tag: 'refund',
        description: 'Pays money back.',
        requiresConfirmation: true,
        parameters: {
          orderId: { type: 'string', required: true },
          amount: { type: 'number', required: true, minimum: 0 },
          card: { type: 'string', required: false, sensitive: true },
        },
        handler: async (_ctx: unknown, parameters: unknown) => {
          refunds.push(parameters);
          return { paid: true };
        },
      },
    ],
    humanInLoop: { enabled: true, ...humanInLoop },
  } as never);
  try {
    await body({
      svc,
      gate,
      refunds,
      async refund(parameters = { orderId: '1234', amount: 20 }) {
        let asked: (request: ApprovalRequest) => void = () => {};
        const requested = new Promise<ApprovalRequest>((resolve) => {
          asked = resolve;
        });
        const outcome = gate.run({ tool: 'refund', parameters }, { onRequested: (request) => asked(request) });
        const early = outcome.then(({ status }) => {
          throw new Error(`it was ${status} before anybody was asked`);
        });
        early.catch(() => undefined);
        return { request: await Promise.race([requested, early]), outcome };
      },
    });
  } finally {
    await svc.close();
  }
}
