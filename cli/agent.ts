import type { Runtime } from '../config/load/runtime.ts';
import { SvcError } from '../core/errors.ts';

/**
 * Variables that AI agents set in the shells that they use, and the values if only those are an agent's. A courtesy, which an
 * agent can remove: what holds is that people are verified.
 */
export const AGENT_MARKERS: readonly (readonly [variable: string, values?: RegExp])[] = [
  ['AI_AGENT'],
  ['CLAUDECODE'],
  ['GEMINI_CLI'],
  ['CURSOR_AGENT'],
  ['CODEX_SANDBOX'],
  ['CODEX_THREAD_ID'],
  ['CLINE_ACTIVE'],
  ['REPLIT_CLI'],
  ['OR_APP_NAME', /^Aider$/],
  ['AWS_EXECUTION_ENV', /amazonq/i],
];

/** Names of environments that are local unless the configuration says otherwise. */
const LOCAL = ['dev', 'test'];

/** The variable that says that an agent runs the command line; undefined without one. */
export function agentMarker(variables: NodeJS.ProcessEnv = process.env): string | undefined {
  const found = AGENT_MARKERS.find(([name, values = /./]) => {
    const set = variables[name];
    return set !== undefined && values.test(set);
  });
  return found?.[0];
}

/** Whether an agent may do here what a person may. */
export function isLocal({ config, env }: Runtime): boolean {
  return config.environments?.[env]?.local ?? LOCAL.includes(env);
}

/** The marker of an agent that runs the command line in an environment that is not local, as none of a server is. */
export const restrictedAgent = (runtime: Runtime | undefined): string | undefined =>
  runtime && isLocal(runtime) ? undefined : agentMarker();

/** Throws `agent_needs_approval` if an agent runs the command line here, unless people are asked anyway. */
export function assertNoAgent(runtime: Runtime, what: string, isAsked = false): void {
  const marker = restrictedAgent(runtime);
  const { env, config } = runtime;
  if (marker === undefined || (isAsked && config.environments?.[env]?.approval)) return;
  throw new SvcError('agent_needs_approval', `An agent may not ${what} in "${env}" by itself.`, {
    why: `${marker} is set: an AI agent runs this command. No flag replaces a person.`,
    state: 'Nothing was changed.',
    next: [
      `Ask a person to run the command, or set environments.${env}.approval, so that people are asked.`,
      `If everybody may change it: environments: { ${env}: { local: true } }`,
    ],
    details: { marker },
  });
}

/** Throws `agent_may_not_decide`: an agent that can decide on a server would not need to ask people. */
export function assertNoAgentLogsIn(): void {
  const marker = agentMarker();
  if (marker === undefined) return;
  throw new SvcError('agent_may_not_decide', 'An agent may not log in as a person.', {
    why: `${marker} is set: an AI agent runs this command.`,
    state: 'No token was stored.',
    next: ['Run the command yourself, in a shell that no agent uses.'],
    details: { marker },
  });
}

/** Throws `agent_may_not_decide`. Without a runtime: on a server. */
export function assertNoAgentDecides(runtime: Runtime | undefined): void {
  const marker = restrictedAgent(runtime);
  if (marker === undefined) return;
  throw new SvcError('agent_may_not_decide', 'An agent may not decide a request.', {
    why: `${marker} is set: an AI agent runs this command, and requests wait for people.`,
    state: 'The request is unchanged.',
    next: ['Ask a person to decide it.'],
    details: { marker },
  });
}
