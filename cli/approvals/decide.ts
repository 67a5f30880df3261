import { ownToken } from '../../config/load/own-token.ts';
import type { Runtime } from '../../config/load/runtime.ts';
import type { ApprovalDetails } from '../../config/sdk/approval-details.ts';
import type { Approvals } from '../../config/sdk/approvals.ts';
import type { SignalResult } from '../../core/approval/decide.ts';
import { unattendedText } from '../../core/approval/public-view.ts';
import { notStartedText } from '../../core/approval/record-text.ts';
import { isSvcError, SvcError, shellQuote } from '../../core/errors.ts';
import { isPlainObject, type Json, readExactJson, tryParseJson } from '../../core/json.ts';
import { osActor } from '../../core/migration/history-table.ts';
import { nearest } from '../../core/nearest.ts';
import { assertNoAgentDecides } from '../agent.ts';
import type { CommandResult, SvcCommand } from '../base.ts';
import { columnsOf } from '../output.ts';
import { canPrompt, choose } from '../prompt.ts';
import { choiceText, escalationLines, requestLines, type ShownRequest, voteLines } from './request-text.ts';

/** Where the width of what is written to is not known. */
export const DEFAULT_COLUMNS = 80;
/** What a prompt writes before a choice. */
const CURSOR = 3;

/** Where requests are read and decided: the store of the configuration, or a server that has one. */
export interface RequestSource {
  readonly approvals: Pick<Approvals, 'list' | 'get' | 'signal' | 'allow' | 'standingRules' | 'revokeStandingRule'>;
  readonly product: string;
  readonly env: string;
  /** Absent on a server. */
  readonly runtime?: Runtime;
}

export interface DecisionInput {
  readonly approve: boolean;
  readonly reason?: string;
  readonly override?: boolean;
  readonly modifiedParams?: { readonly [name: string]: Json };
  /** From `svc approvals show`. */
  readonly reviewToken?: string;
}

/** Decides a request and prints the result. */
export async function submitDecision(
  command: SvcCommand,
  { approvals, runtime }: RequestSource,
  requestId: string,
  decision: DecisionInput,
): Promise<CommandResult> {
  assertNoAgentDecides(runtime);
  const { approve, reason, override, modifiedParams, reviewToken } = decision;
  const result: SignalResult = await approvals
    .signal(
      {
        signal: approve ? 'approve' : 'reject',
        payload: { requestId, ...(reason !== undefined && { reason }), ...(modifiedParams && { modifiedParams }) },
      },
      {
        ...currentPerson(),
        ...(override && { override }),
        ...(reviewToken !== undefined && { reviewToken }),
      },
    )
    .catch((error) => {
      throw isSvcError(error) && error.code === 'approval_unseen'
        ? error.with({
            next: showThenDecide(requestId, true, `svc approvals ${approve ? 'approve' : 'reject'} ${requestId} --yes`),
          })
        : error;
    });
  if (result.status === 'waiting') {
    command.print(`${result.requestId} is waiting, your vote was stored at ${result.decidedAt}`);
    for (const line of voteLines(result)) command.note(line);
    return { data: { ...result } };
  }
  command.print(`${result.requestId} is ${result.status}, decided at ${result.decidedAt}`);
  // Also where no process is left that could run the call.
  const record = approve ? await approvals.get(requestId) : undefined;
  const text = record ? notStartedText(record) : '';
  if (text !== '') command.note(`The call has ${text.slice(2)}`);
  if (record && result.unattendedSince !== undefined) command.note(unattendedText(record, result.unattendedSince));
  return { data: { ...result } };
}

/** The two commands to show and decide a request without a terminal. */
function showThenDecide(requestId: string, isMasked: boolean, decide: string): string[] {
  return [
    `svc approvals show ${requestId}${isMasked ? ' --reveal' : ''} --json    shows it, with its request.reviewToken`,
    `${decide} --review-token <reviewToken>`,
  ];
}

/**
 * Approving what no terminal has shown needs a confirmation and proof that the request was shown. Throws
 * `confirmation_required` or `approval_unseen`. A request that is already decided needs neither: nothing changes.
 */
export function assertShown(
  { record: { requestId, status, reviewToken }, isRevealed, unshown }: PresentedRequest,
  given: { readonly yes: boolean; readonly reviewToken: string | undefined; readonly flags: readonly string[] },
): void {
  if (unshown === undefined || status !== 'waiting' || (given.yes && given.reviewToken !== undefined)) return;
  const missing = [...(given.yes ? [] : ['--yes']), ...(given.reviewToken === undefined ? ['--review-token'] : [])];
  const decide = ['svc approvals approve', requestId, ...given.flags.map(shellQuote), '--yes'].join(' ');
  throw new SvcError(
    given.reviewToken === undefined ? 'approval_unseen' : 'confirmation_required',
    `The approval needs ${missing.join(' and ')}.`,
    {
      why: `${unshown}, so the command needs ${given.yes ? '' : 'your consent, and '}proof that the request was shown.`,
      state: 'The request is still waiting.',
      next: showThenDecide(requestId, isRevealed || reviewToken === undefined, decide),
    },
  );
}

/** Returns the named request, or prompts for one. */
export async function pickRequest(
  command: SvcCommand,
  { approvals }: RequestSource,
  named: string | undefined,
): Promise<string> {
  if (named !== undefined) return named;
  if (!canPrompt(command)) {
    throw new SvcError('usage', 'The id of the request is missing.', {
      state: 'Nothing was decided.',
      next: ['svc approvals list    lists the waiting requests'],
    });
  }
  const { records } = await approvals.list({ limit: 50 });
  if (records.length === 0)
    throw new SvcError('approval_unknown', 'No request is waiting.', { state: 'Nothing was decided.' });
  const now = new Date();
  const width = (columnsOf(command.context.stderr) ?? DEFAULT_COLUMNS) - CURSOR;
  return choose(
    command,
    { message: 'Which request?', flag: '<requestId>' },
    records.map((record) => ({
      name: choiceText(record, now, width),
      value: record.requestId,
    })),
  );
}

export interface PresentedRequest {
  readonly record: ApprovalDetails;
  /** Whether it has the values of sensitive parameters. */
  readonly isRevealed: boolean;
  /** Why nobody has seen all of it. */
  readonly unshown?: string;
}

/** What every terminal keeps within reach; common limits are 1,000 (VS Code) and 2,000 lines (tmux). */
const MAX_LINES = 1_000;

/** Who runs the command: the owner of SVC_TOKEN, or a user of this machine. */
export function currentPerson(): { readonly actor: string; readonly token?: string } {
  const token = ownToken();
  return { actor: `command line, ${osActor()}`, ...(token !== undefined && { token }) };
}

/** The token of the person who runs a command that needs one. Throws `usage`. */
export function requiredToken(needs: string, state: string): string {
  const token = ownToken();
  if (token !== undefined) return token;
  throw new SvcError('usage', `${needs} needs SVC_TOKEN: the token of the person who makes it.`, {
    state,
    next: ['svc people token create <id> --expires 90d    creates one'],
  });
}

/** Reads a request. On a terminal, shows all of it, including sensitive parameters, before the decision. */
export async function showRequest(
  command: SvcCommand,
  source: RequestSource,
  requestId: string,
): Promise<PresentedRequest> {
  const isRevealed = canPrompt(command);
  const record = await source.approvals.get(requestId, { reveal: isRevealed, ...currentPerson() });
  if (!isRevealed) return { record, isRevealed, unshown: 'There is no terminal' };
  const { stderr } = command.context;
  const lines = requestLines(shownRequest(record, source), columnsOf(stderr) ?? DEFAULT_COLUMNS);
  const isTooLong = lines.length > MAX_LINES;
  for (const line of isTooLong ? lines.slice(0, MAX_LINES) : lines) command.note(line);
  for (const line of [...voteLines(record), ...escalationLines(record)]) command.note(line);
  if (record.unattendedSince !== undefined) command.note(unattendedText(record, record.unattendedSince));
  if (!isTooLong) return { record, isRevealed };
  const unshown = `The request has ${lines.length} lines, of which a terminal shows ${MAX_LINES}`;
  command.note(`${unshown}.`);
  return { record, isRevealed, unshown };
}

/** A request with the product and the environment whose store it is in. */
export function shownRequest(record: ApprovalDetails, { product, env }: RequestSource): ShownRequest {
  const { definition } = record;
  return { ...record, product, env, ...(definition && { description: definition.description }) };
}

/** Parses `--set name=value` by the tool's schema: strings as they are, everything else as JSON. Throws `usage`. */
export function parseModifiedParams(
  flags: readonly string[],
  schema: Json | undefined,
): { [name: string]: Json } | undefined {
  if (flags.length === 0) return undefined;
  const properties = propertiesOf(schema);
  const changes: { [name: string]: Json } = Object.create(null);
  for (const flag of flags) {
    // Node.js puts U+FFFD in place of each byte that is not UTF-8.
    if (flag.includes('\ufffd')) throw usageError('The value of --set is not UTF-8, or contains U+FFFD.');
    const [, name, text] = /^([^=]+)=([\s\S]*)$/.exec(flag) ?? [];
    if (name === undefined || text === undefined) throw usageError(`--set must be <parameter>=<value>, not "${flag}".`);
    if (properties && !Object.hasOwn(properties, name)) {
      const names = Object.keys(properties);
      const near = nearest(name, names);
      throw usageError(`The tool has no parameter "${name}".`, [
        near ? `Did you mean "${near}"?` : `Its parameters: ${names.join(', ') || 'none'}.`,
      ]);
    }
    if (name in changes) throw usageError(`--set contains "${name}" twice.`);
    changes[name] = parseValue(name, text, properties?.[name]);
  }
  return changes;
}

function parseValue(name: string, text: string, property: Json | undefined): Json {
  const type = isPlainObject(property) ? property.type : undefined;
  if (type === 'string') return text;
  if (tryParseJson(text) === undefined) {
    if (type === undefined) return text;
    throw usageError(
      `The parameter "${name}" must be ${type === 'array' || type === 'object' ? 'JSON' : `a ${type}`}, not "${text}".`,
    );
  }
  const read = readExactJson(text);
  if ('value' in read) return read.value;
  throw usageError(`The parameter "${name}" would not be what you wrote. ${read.problem}`, [
    'Write each key once, and numbers of at most 15 digits.',
  ]);
}

function propertiesOf(schema: Json | undefined): { readonly [name: string]: Json } | undefined {
  const properties = isPlainObject(schema) ? schema.properties : undefined;
  return isPlainObject(properties) ? (properties as { readonly [name: string]: Json }) : undefined;
}

function usageError(message: string, next: readonly string[] = []): SvcError {
  return new SvcError('usage', message, { state: 'Nothing was decided.', next });
}
