import { SvcError } from '../errors.ts';
import { MAX_PARAMETERS_BYTES } from '../tool/call-digest.ts';
import type { ParameterProblem } from '../tool/json-schema.ts';
import { type Problem, problemText } from '../validate-shape.ts';
import type { AppliedDecision } from './apply-decision.ts';
import { problemsText } from './outcome.ts';
import { UNVERIFIED } from './rule.ts';

/* Why a decision is rejected. Nothing was decided then, or an existing decision is unchanged. */

export function notApplied({ refused, why }: Extract<AppliedDecision, { readonly refused: unknown }>): SvcError {
  return new SvcError(refused, 'The decision was not accepted.', {
    why,
    state: 'The request is still waiting.',
    ...(why === UNVERIFIED && {
      next: ['Send the token of a person, or sign in. On the command line, set SVC_TOKEN.'],
    }),
  });
}

export function damagedRequest(): SvcError {
  return new SvcError('approval_stale', 'The request cannot be approved: what is stored of it is damaged.', {
    why: 'It was not written by this SDK, or was changed in the store.',
    state: 'Nothing was decided.',
    next: ['Reject the request, and let the agent call the tool again.'],
  });
}

export function unseenParameters(): SvcError {
  return new SvcError('approval_unseen', 'The request has sensitive parameters that have not been reviewed.', {
    why: 'Deliveries and lists mask them.',
    state: 'The request is still waiting.',
    next: ['Read them with svc.approvals.get(requestId, { reveal: true }) and pass its reviewToken.'],
  });
}

export function wrongReviewToken(): SvcError {
  return new SvcError('approval_unseen', 'The review token is not that of the request.', {
    why: 'It belongs to another request, or the request has changed since it was shown.',
    state: 'The request is still waiting.',
    next: ['Read the request with svc.approvals.get(requestId, { reveal: true }) and pass its reviewToken.'],
  });
}

export function invalidDecision(problems: readonly Problem[]): SvcError {
  return new SvcError('decision_invalid', 'The decision is invalid.', {
    why: problems.map(problemText).join(' '),
    state: 'Nothing was decided.',
    details: { problems: problems.map(problemText) },
  });
}

export function invalidParameters(problems: readonly ParameterProblem[]): SvcError {
  return new SvcError('approval_parameters_invalid', 'The modified parameters do not match the schema of the tool.', {
    why: `${problemsText(problems)}.`,
    state: 'The request is still waiting.',
    details: { problems },
  });
}

export function tooLargeParameters(): SvcError {
  return new SvcError('parameters_too_large', 'The modified parameters are too large.', {
    state: 'Nothing was decided.',
    next: [`Keep them below ${MAX_PARAMETERS_BYTES / 1024} KiB.`],
  });
}

/** The same error for a missing request and for one of another execution, so that guessing ids reveals nothing. */
export function unknownRequest({
  executionId,
  requestId,
}: {
  readonly requestId: string;
  readonly executionId?: string | undefined;
}): SvcError {
  const what =
    executionId === undefined ? 'No request has this id.' : 'No request with that id belongs to that execution.';
  return new SvcError('approval_unknown', what, {
    state: 'Nothing was decided.',
    next: ['svc approvals list    lists the waiting requests'],
    details: { requestId },
  });
}
