import { checkParsePolicySet, type EntityJson, isAuthorized } from '@cedar-policy/cedar-wasm/nodejs';
import { definePlugin, type Plugin } from '@svc/sdk';

type Context = Parameters<typeof isAuthorized>[0]['context'];

/**
 * Applies policies in Cedar. A tool call is `Agent::"payouts"`, `Action::"run"` and `Tool::"refund"`, with the parameters as the
 * context. If it may not run, it waits for approval where `Action::"request"` is permitted; otherwise it is denied. A decision is
 * `Person::"ann@acme.example"`, in her groups, and `Action::"approve"` or `Action::"reject"`. Throws if a policy is not valid.
 */
export function cedarPolicies(policies: string): Plugin {
  const staticPolicies = policies;
  const parsed = checkParsePolicySet({ staticPolicies });
  if (parsed.type === 'failure') throw new Error(`The policies are not valid: ${messages(parsed.errors)}`);

  const isPermitted = (principal: EntityJson, action: string, tool: string, parameters: object): boolean => {
    const answer = isAuthorized({
      principal: principal.uid,
      action: { type: 'Action', id: action },
      resource: { type: 'Tool', id: tool },
      context: contextOf(parameters),
      policies: { staticPolicies },
      entities: [principal],
    });
    if (answer.type === 'failure') throw new Error(messages(answer.errors));
    const { decision, diagnostics } = answer.response;
    // Cedar leaves out a policy that fails, also one that forbids.
    if (diagnostics.errors.length > 0) throw new Error(messages(diagnostics.errors.map(({ error }) => error)));
    return decision === 'allow';
  };

  return definePlugin({
    name: 'policy-cedar',
    apply({ hooks }) {
      hooks.beforeToolCall.tap('policy-cedar', (review) => {
        const { agentTag, tool, parameters } = review.call;
        const agent = { uid: { type: 'Agent', id: agentTag }, attrs: {}, parents: [] };
        if (isPermitted(agent, 'run', tool, parameters)) return;
        if (isPermitted(agent, 'request', tool, parameters)) review.requireApproval('A policy requires approval.');
        else review.deny('A policy does not permit this call.');
      });
      hooks.beforeDecision.tap('policy-cedar', (review) => {
        const { approved, principal, modifiedParams } = review.decision;
        const { tool, parameters } = review.request;
        const person = {
          uid: { type: 'Person', id: principal.id },
          attrs: { verifiedBy: principal.verifiedBy },
          parents: principal.groups.map((id) => ({ type: 'Group', id })),
        };
        const action = approved ? 'approve' : 'reject';
        if (isPermitted(person, action, tool, { ...parameters, ...modifiedParams })) return;
        review.refuse(`A policy does not let this person ${action} it.`);
      });
    },
  });
}

/** Cedar has no null. It rejects a number that is not whole, and with it the call. */
function contextOf(parameters: object): Context {
  return Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined));
}

const messages = (errors: readonly { readonly message: string }[]): string =>
  errors.map(({ message }) => message).join(' ');
