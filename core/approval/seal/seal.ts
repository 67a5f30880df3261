import { SvcError } from '../../errors.ts';
import { canonicalJson, isPlainObject, jsonDigest } from '../../json.ts';
import type { SealKey, SealPublicKey } from './key.ts';
import { merkleRoot } from './merkle.ts';

/** The events that a request had: how many, and the hash of the last one. @experimental */
export interface SealedRequest {
  readonly requestId: string;
  readonly events: number;
  /** SHA-256 of the last event, or of the request without one, as canonical JSON (RFC 8785), in base64url. */
  readonly head: string;
  /** `svc approvals prune` removed the request after this. */
  readonly removed?: true;
}

/** A seal without the requests that it covers: what is signed. @experimental */
export interface SealHeader {
  /** 1, 2, 3 … in one store. */
  readonly seal: number;
  /** ISO 8601, UTC, by the store's clock: when the search for new events began. */
  readonly at: string;
  readonly product: string;
  readonly env: string;
  /** SHA-256 of the header before it, as canonical JSON, in base64url; null in the first. */
  readonly previous: string | null;
  /** The last seal of a search: every event that was stored at `at` is in this one or in one before it. */
  readonly complete?: true;
  /** The number of requests. */
  readonly size: number;
  /** The root of the Merkle tree (RFC 9162) over the canonical JSON of each request, in base64url. */
  readonly root: string;
  /** Of the key that signed: the beginning of the SHA-256 of its SubjectPublicKeyInfo. */
  readonly key: string;
  /** Ed25519 over `svc audit seal 1`, a line feed and the canonical JSON of the rest of this header; base64url. */
  readonly signature: string;
}

/** What a sink receives and the store has. @experimental */
export interface Seal extends SealHeader {
  readonly requests: readonly SealedRequest[];
}

export type SealInput = Pick<Seal, 'seal' | 'at' | 'product' | 'env' | 'previous' | 'complete' | 'requests'>;

/** A signature for this purpose is one for no other. */
const PURPOSE = 'svc audit seal 1\n';

export function createSeal({ requests, ...input }: SealInput, key: SealKey): Seal {
  const root = merkleRoot(leavesOf(requests));
  const unsigned = { ...input, size: requests.length, root, key: key.id };
  return { ...unsigned, requests, signature: key.sign(signedText(unsigned)) };
}

/** The leaves of the tree, in the order of the requests. */
export const leavesOf = (requests: readonly SealedRequest[]): string[] => requests.map(leafOf);

export function leafOf({ requestId, events, head, removed }: SealedRequest): string {
  return canonicalJson({ requestId, events, head, removed });
}

export function headerOf(seal: SealHeader): SealHeader {
  const { signature } = seal;
  return { ...unsignedHeader(seal), signature };
}

/** What the next seal has as `previous`. */
export const headerDigest = (seal: SealHeader): string => jsonDigest(headerOf(seal));

/** Why a header is not what one of these keys has signed; undefined if it is. Throws `config_invalid` for another key. */
export function signatureProblem(header: SealHeader, keys: readonly SealPublicKey[]): string | undefined {
  const key = keys.find(({ id }) => id === header.key);
  if (key) return key.verifies(signedText(header), header.signature) ? undefined : 'is not what was signed';
  throw new SvcError('config_invalid', `The key that signed seal ${header.seal} is not known.`, {
    why: `Its id is ${JSON.stringify(header.key)}; known: ${keys.map(({ id }) => id).join(', ')}.`,
    next: [
      'After a change of the key: add the public key of that time to approvals.seals.publicKeys, or pass it with --key.',
      'Otherwise, find out who wrote to the database.',
    ],
  });
}

/** As `signatureProblem`, of a whole seal. */
export function sealProblem(seal: Seal, keys: readonly SealPublicKey[]): string | undefined {
  const problem = signatureProblem(seal, keys);
  if (problem !== undefined) return problem;
  const isSame = seal.requests.length === seal.size && merkleRoot(leavesOf(seal.requests)) === seal.root;
  return isSame ? undefined : 'has other requests than were signed';
}

const signedText = (header: Omit<SealHeader, 'signature'>): string =>
  `${PURPOSE}${canonicalJson(unsignedHeader(header))}`;

function unsignedHeader(header: Omit<SealHeader, 'signature'>): Omit<SealHeader, 'signature'> {
  const { seal, at, product, env, previous, complete, size, root, key } = header;
  return { seal, at, product, env, previous, ...(complete && { complete }), size, root, key };
}

const TEXTS = ['at', 'product', 'env', 'root', 'key', 'signature'];

/** Whether something has the form of a header; only its signature shows whether it is one. */
export function isSealHeader(value: unknown): value is SealHeader {
  return (
    isPlainObject(value) &&
    TEXTS.every((name) => typeof value[name] === 'string') &&
    Number.isSafeInteger(value.seal) &&
    Number.isSafeInteger(value.size) &&
    (value.previous === null || typeof value.previous === 'string')
  );
}

export function isSeal(value: unknown): value is Seal {
  return (
    isSealHeader(value) && 'requests' in value && Array.isArray(value.requests) && value.requests.every(isSealedRequest)
  );
}

export function isSealedRequest(value: unknown): value is SealedRequest {
  return (
    isPlainObject(value) &&
    typeof value.requestId === 'string' &&
    typeof value.head === 'string' &&
    Number.isSafeInteger(value.events)
  );
}
