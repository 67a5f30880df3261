import { storable } from '../agent/own-json.ts';
import { wordsOf } from '../errors.ts';
import { isPlainObject, type Json } from '../json.ts';
import { withoutPassword } from '../url.ts';
import { PARAMETERS_LIMIT } from './digest.ts';
import type { Outcome, OutcomeStatus, Parameters } from './request.ts';

/** What `call` and `run` of a gate give. A human's no is a result and never an exception. @experimental */
export interface CallOutcome extends Outcome {
  /** Names of the parameters that a human changed; the tool ran with the changed ones. */
  readonly changed?: readonly string[];
  /** Absent where no approval was needed. */
  readonly requestId?: string;
}

interface Asked {
  readonly tool: string;
  readonly parameters: Parameters;
}

/** Why a tool did not run, or why nobody knows whether it did. */
export type NotRun = 'approval_rejected' | 'approval_cancelled' | 'policy_denied' | 'approval_stale' | 'interrupted';

const STATUS: Readonly<Record<NotRun, OutcomeStatus>> = {
  approval_rejected: 'rejected',
  approval_cancelled: 'cancelled',
  policy_denied: 'denied',
  approval_stale: 'stale',
  interrupted: 'interrupted',
};

const MESSAGES: Readonly<Record<NotRun, string>> = {
  approval_rejected: 'The approval request was rejected. The tool did not run.',
  approval_cancelled: 'The approval request was cancelled. The tool did not run.',
  policy_denied: 'A policy does not allow this call. The tool did not run.',
  approval_stale: 'The tool or the request is no longer what was shown for approval. The tool did not run.',
  interrupted: 'The tool was interrupted: whether it took effect is not known.',
};

/** SPEC 2.7, word for word. */
export function timedOut({ tool, parameters }: Asked, timeoutMs: number): Outcome {
  const message = `The approval request timed out after ${timeoutMs} ms.`;
  return { status: 'rejected', result: { error: 'approval_timeout', message, tool, parameters } };
}

export function notRun(error: NotRun, { tool, parameters }: Asked, reason?: string): Outcome {
  return {
    status: STATUS[error],
    result: { error, message: MESSAGES[error], reason: reason ?? null, tool, parameters },
  };
}

/** As it is stored beside the parameters: a result that is not a handler's repeats them, and both may be long. */
export function unrepeated({ status, result }: Outcome): Outcome {
  if (status === 'completed' || !isPlainObject(result)) return { status, result };
  const { parameters, ...rest } = result;
  return { status, result: rest };
}

/** As the model sees what is stored so. */
export function repeated({ status, result }: Outcome, { parameters }: Pick<Asked, 'parameters'>): Outcome {
  return { status, result: status === 'completed' || !isPlainObject(result) ? result : { ...result, parameters } };
}

/** The model called what does not exist, or with parameters that do not fit: nothing ran, nobody was asked. */
export function invalid(error: string, message: string, tool: string): Outcome {
  return { status: 'invalid', result: { error, message, tool } };
}

export function tooLargeFor(tool: string): Outcome {
  return invalid('parameters_too_large', `The parameters have more than ${PARAMETERS_LIMIT / 1024} KiB.`, tool);
}

const LONGEST_MESSAGE = 2_000;

/** A handler's error as the model may see it: its message alone, without credentials of URLs in it. */
export function failed(error: unknown, { tool, parameters }: Asked): Outcome {
  const shown = storable(
    wordsOf(error)
      .replace(/[a-z][a-z0-9+.-]*:\/\/\S+/gi, withoutPassword)
      .slice(0, LONGEST_MESSAGE),
  );
  return { status: 'failed', result: { error: 'tool_failed', message: `The tool failed: ${shown}`, tool, parameters } };
}

/** What a handler gave, as JSON would carry it; undefined where JSON cannot. */
export function jsonResult(value: unknown): Json | undefined {
  if (value === undefined) return null;
  try {
    return JSON.parse(JSON.stringify(value) ?? 'null') as Json;
  } catch {
    return undefined;
  }
}
