import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';
import { SvcError } from '../../errors.ts';

/** The private key that signs seals. */
export interface SealKey extends SealPublicKey {
  /** Returns the signature in base64url. */
  sign(text: string): string;
}

/** The key that verifies seals. */
export interface SealPublicKey {
  readonly id: string;
  /** As PEM. */
  readonly pem: string;
  verifies(text: string, signature: string): boolean;
}

/**
 * Reads an Ed25519 key: PKCS #8 as PEM, or the base64 of its DER on one line. Throws `config_invalid`, which never
 * contains the key.
 */
export function readSealKey(text: string, where: string): SealKey {
  const key = read(text, where, 'private', (input) =>
    createPrivateKey(typeof input === 'string' ? input : { key: input, format: 'der', type: 'pkcs8' }),
  );
  return {
    ...publicKeyOf(createPublicKey(key)),
    sign: (signed) => sign(null, Buffer.from(signed), key).toString('base64url'),
  };
}

/** Reads the public key of `svc approvals seal --public-key`: PEM, or the base64 of its DER. Throws `config_invalid`. */
export function readSealPublicKey(text: string, where: string): SealPublicKey {
  return publicKeyOf(
    read(text, where, 'public', (input) =>
      createPublicKey(typeof input === 'string' ? input : { key: input, format: 'der', type: 'spki' }),
    ),
  );
}

const ID_LENGTH = 16;

function publicKeyOf(key: KeyObject): SealPublicKey {
  const der = key.export({ format: 'der', type: 'spki' });
  return {
    id: hash('sha256', der, 'base64url').slice(0, ID_LENGTH),
    pem: key.export({ format: 'pem', type: 'spki' }).toString(),
    verifies: (text, signature) => verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url')),
  };
}

function read(
  text: string,
  where: string,
  kind: 'private' | 'public',
  parse: (input: string | Buffer) => KeyObject,
): KeyObject {
  let key: KeyObject | undefined;
  try {
    key = parse(text.includes('-----BEGIN') ? text : Buffer.from(text, 'base64'));
  } catch {
    // Reported below, without the reason: it may quote the key.
  }
  if (key?.asymmetricKeyType === 'ed25519') return key;
  throw new SvcError('config_invalid', `The ${kind} key of the seals is not an Ed25519 key.`, {
    next: [
      kind === 'private'
        ? 'openssl genpkey -algorithm ed25519 -outform DER | base64    creates one'
        : 'svc approvals seal --public-key    prints it, where approvals.seals.key is set',
    ],
    where,
  });
}
