import type { ApprovalsConfig } from '../../config/define.ts';
import { definePlugin, type Svc } from '../../config/sdk/index.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import { withGate } from '../suites/gate-client.ts';

/** Markup that would create an element, run a script or load something if it were not escaped. */
const PAYLOADS = [
  '<script>window.ran=1</script>',
  '<img src=x onerror="window.ran=1">',
  `"'><svg onload=window.ran=1>`,
  '</pre></dd></textarea></title><iframe srcdoc="<script>parent.ran=1</script>">',
  '&lt;b&gt;&#39;',
];

interface HostileRequest {
  readonly svc: Svc;
  readonly request: ApprovalRequest;
  /** What must be on the page that shows it, as text. */
  readonly payloads: readonly string[];
}

/**
 * Runs `body` with a request that has markup in everything that is not the program's own: agent, description, reason, words of
 * the model, names and values of parameters, and the result. Some of it is long or deep.
 */
export async function withHostileRequest(
  body: (hostile: HostileRequest) => Promise<void>,
  approvals: ApprovalsConfig = {},
): Promise<void> {
  const all = PAYLOADS.join('');
  const strict = definePlugin({
    name: 'strict',
    apply: ({ hooks }) => void hooks.beforeToolCall.tap('strict', (review) => review.requireApproval(`Why: ${all}`)),
  });
  await withGate({ approvals, config: { plugins: [strict] } }, async ({ svc }) => {
    const gate = svc.gate({
      agentTag: `agent ${PAYLOADS[0]}`,
      tools: [
        {
          tag: 'wire',
          description: `${all} ${'long'.repeat(100)}`,
          parameters: { deep: { type: 'object', required: true } },
          handler: async () => PAYLOADS,
        },
      ],
      humanInLoop: { enabled: true },
    } as never);
    let deep: unknown = PAYLOADS;
    for (const name of [...PAYLOADS, 'x'.repeat(300), ...'abcdefghijklmnopqrst']) deep = { [name]: deep };
    const model = { modelText: all, requester: PAYLOADS[1], model: PAYLOADS[2] };
    const request = await new Promise<ApprovalRequest>((onRequested, onError) => {
      gate.run({ tool: 'wire', parameters: { deep }, ...model } as never, { onRequested }).catch(onError);
    });
    await body({ svc, request, payloads: PAYLOADS });
  });
}
