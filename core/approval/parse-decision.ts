import { SvcError } from '../errors.ts';
import { readExactJson } from '../json.ts';

/**
 * Parses the JSON body of a decision. Throws `decision_invalid` if the result would differ from what was sent: a body that
 * is not JSON or not UTF-8, a key that occurs twice in one object, or a number that JavaScript cannot represent. Pass the
 * bytes as they arrived: a decoded text no longer shows that it was not UTF-8. @experimental
 */
export function parseDecision(body: string | Uint8Array): unknown {
  const isReadable = typeof body === 'string' || body instanceof Uint8Array;
  const read = isReadable ? readExactJson(body) : { problem: 'It is neither a text nor bytes.' };
  if ('value' in read) return read.value;
  throw new SvcError('decision_invalid', 'The body of a decision is not valid.', {
    why: read.problem,
    state: 'Nothing was decided.',
    next: ['Send JSON in UTF-8, each key once, and numbers of at most 15 digits.'],
  });
}
