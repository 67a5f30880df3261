import type { Runtime } from '../../config/load/runtime.ts';
import type { ApprovalDetails, Approvals } from '../../config/sdk/approvals.ts';
import type { SignalResult } from '../../core/approval/decide.ts';
import { isSvcError, SvcError } from '../../core/errors.ts';
import { isPlainObject, type Json, readExactJson, tryParseJson } from '../../core/json.ts';
import { osActor } from '../../core/migration/history-table.ts';
import { nearest } from '../../core/nearest.ts';
import { type CommandResult, SvcCommand } from '../base.ts';
import { canPrompt, choose } from '../prompt.ts';
import { choiceText, requestLines } from './request-text.ts';

export interface DecisionInput {
  readonly approve: boolean;
  readonly reason?: string;
  readonly modifiedParams?: { readonly [name: string]: Json };
  /** From `approvals.get(…, { reveal: true })`. */
  readonly reviewToken?: string;
}

/** Decides a request and prints the result. */
export async function submitDecision(
  command: SvcCommand,
  approvals: Approvals,
  requestId: string,
  decision: DecisionInput,
): Promise<CommandResult> {
  const { approve, reason, modifiedParams, reviewToken } = decision;
  const result: SignalResult = await approvals
    .signal(
      {
        signal: approve ? 'approve' : 'reject',
        payload: { requestId, ...(reason !== undefined && { reason }), ...(modifiedParams && { modifiedParams }) },
      },
      { actor: `command line, ${osActor()}`, ...(reviewToken !== undefined && { reviewToken }) },
    )
    .catch((error) => {
      throw isSvcError(error) && error.code === 'approval_unseen'
        ? error.with({ next: revealFirst(requestId) })
        : error;
    });
  command.print(`${result.requestId} is ${result.status}, decided at ${result.decidedAt}`);
  return { data: { ...result } };
}

/** The two commands to show and decide a request without a terminal. */
function revealFirst(requestId: string): string[] {
  return [
    `svc approvals show ${requestId} --reveal --json`,
    'Then decide with --review-token and the value of request.reviewToken in the output.',
  ];
}

/** Returns the named request, or prompts for one. */
export async function pickRequest(
  command: SvcCommand,
  approvals: Approvals,
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
  return choose(
    command,
    { message: 'Which request?', flag: '<requestId>' },
    records.map((record) => ({
      name: choiceText(record, now),
      value: record.requestId,
    })),
  );
}

/** Reads a request. On a terminal, shows all of it, including sensitive parameters, before the decision. */
export async function showRequest(
  command: SvcCommand,
  approvals: Approvals,
  requestId: string,
): Promise<ApprovalDetails> {
  const reveal = canPrompt(command);
  const record = await approvals.get(requestId, { reveal });
  if (reveal) for (const line of requestLines({ ...record, ...toolDescription(record) })) command.note(line);
  return record;
}

export function toolDescription({ definition }: ApprovalDetails): { readonly description?: string } {
  return definition ? { description: definition.description } : {};
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

/** A command on the requests of the configured approval store. */
export abstract class ApprovalsCommand extends SvcCommand {
  abstract work(approvals: Approvals, runtime: Runtime): Promise<CommandResult | undefined>;

  async run(): Promise<CommandResult | undefined> {
    const runtime = await this.runtime();
    if (runtime.config.approvals?.store === undefined) {
      throw new SvcError('config_invalid', 'No store is configured for approvals.', {
        why: 'Without a store, requests are in the memory of the process that runs the agents, and no other process can read them.',
        next: ["Set approvals: { store: { database: '<tag>' } } in svc.config."],
        ...(runtime.file !== undefined && { where: runtime.file }),
      });
    }
    const [{ Approvals }, { closeApprovals }] = await Promise.all([
      import('../../config/sdk/approvals.ts'),
      import('../../config/sdk/approval-runtime.ts'),
    ]);
    try {
      return await this.work(new Approvals(async () => runtime), runtime);
    } finally {
      await closeApprovals(runtime);
    }
  }
}
