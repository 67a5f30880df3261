import { access } from 'node:fs/promises';
import { readSealKey, readSealPublicKey, type SealKey, type SealPublicKey } from '../../core/approval/seal/key.ts';
import { SealLog } from '../../core/approval/seal/seal-log.ts';
import type { SealSource } from '../../core/approval/seal/sealed-audit.ts';
import { Sealer } from '../../core/approval/seal/sealer.ts';
import type { SealSink } from '../../core/approval/seal/sink.ts';
import { isSealed, uncheckedSeals } from '../../core/approval/seal/stored-seals.ts';
import { errorMessage, SvcError, systemErrorCode } from '../../core/errors.ts';
import type { Runtime } from '../load/runtime.ts';
import { openApprovals } from './approval-runtime.ts';

/** Where the seals of a verification come from, and who may have signed them. @experimental */
export interface SealOptions {
  /** Files with a seal on each line, in order. Default: a sink that can be read, otherwise the store. */
  readonly sealFiles?: readonly string[];
  /** Public keys as PEM or base64. Default: those of the configuration. */
  readonly publicKeys?: readonly string[];
}

/** Seals what is new in the store of a runtime. Throws `config_invalid` without a usable key or sink. */
export async function openSealer(runtime: Runtime): Promise<Sealer> {
  const key = requireSealKey(runtime);
  const earlier = configuredPublicKeys(runtime);
  const sinks = new Map<string, SealSink>();
  for (const name of Object.keys(runtime.config.approvals?.seals?.sinks ?? {}))
    sinks.set(name, await runtime.sealSink(name));
  const { service, backend, owner } = await openApprovals(runtime);
  return new Sealer(service, await SealLog.open(backend, owner, { key, earlier }, sinks));
}

/**
 * What seals the removal of requests, and what they are compared with before it, in a store that is sealed. Throws
 * `seals_needed` where it is not configured.
 */
export async function sealsForRemoval(
  runtime: Runtime,
): Promise<{ readonly sealer: Sealer; readonly source: SealSource } | undefined> {
  const source = await sealSource(runtime, {});
  if (source) return { sealer: await openSealer(runtime), source };
  const { backend } = await openApprovals(runtime);
  if (!(await isSealed(backend))) return undefined;
  throw new SvcError('seals_needed', 'The audit of this store is sealed, and approvals.seals is not set.', {
    why: 'What is removed has to be sealed first: otherwise `svc approvals verify` reports it as missing.',
    state: 'Nothing was removed.',
    next: ['Run it where approvals.seals is set, with the key.'],
  });
}

/** The key that signs. Throws `config_invalid` without one. */
export function requireSealKey({ config, file }: Pick<Runtime, 'config' | 'file'>): SealKey {
  const { key } = config.approvals?.seals ?? {};
  if (key !== undefined) return readSealKey(key, 'approvals.seals.key');
  const isConfigured = config.approvals?.seals !== undefined;
  throw new SvcError('config_invalid', `approvals.seals${isConfigured ? '.key' : ''} is not set.`, {
    why: 'Seals are signed with a private key.',
    state: 'Nothing was sealed.',
    next: isConfigured
      ? ['Set the environment variable that contains the key.']
      : [
          "Set approvals: { seals: { key: process.env.SVC_SEAL_KEY, sinks: { file: { type: 'file', path: 'seals.jsonl' } } } } in svc.config.",
          'openssl genpkey -algorithm ed25519 -outform DER | base64    creates a key',
        ],
    ...(file !== undefined && { where: file }),
  });
}

/** What the audit is compared with; undefined if nothing is known of seals. Throws `config_invalid` without a public key. */
export async function sealSource(
  runtime: Runtime,
  { sealFiles = [], publicKeys = [] }: SealOptions,
): Promise<SealSource | undefined> {
  const { config, product, env } = runtime;
  const { seals } = config.approvals ?? {};
  if (!seals && sealFiles.length === 0 && publicKeys.length === 0) return undefined;
  const keys = sealPublicKeys(runtime, publicKeys);
  if (sealFiles.length > 0) {
    const open = await runtime.find('sealSinks', 'file');
    for (const path of sealFiles) await assertReadable(path);
    const files = sealFiles.map((path) => open({ root: process.cwd(), path }));
    const from = sealFiles.join(', ');
    return { from, isExpected: true, keys, product, env, read: () => readAll(files, from) };
  }
  const { backend } = await openApprovals(runtime);
  const isExpected = await isSealed(backend);
  for (const name of Object.keys(seals?.sinks ?? {})) {
    const sink = await runtime.sealSink(name);
    const from = `the sink "${name}"`;
    if (sink.read) return { from, isExpected, keys, product, env, read: () => readAll([sink], from) };
  }
  return { from: 'the store itself', isExpected, keys, product, env, read: () => uncheckedSeals(backend) };
}

/** The keys of which one must have signed a seal. Throws `config_invalid` without one. */
export function sealPublicKeys(
  { config }: Pick<Runtime, 'config'>,
  given: readonly string[],
): readonly SealPublicKey[] {
  const { key } = config.approvals?.seals ?? {};
  const keys =
    given.length > 0
      ? given.map((text) => readSealPublicKey(text, 'the public key'))
      : [...(key === undefined ? [] : [readSealKey(key, 'approvals.seals.key')]), ...configuredPublicKeys({ config })];
  if (keys.length > 0) return keys;
  throw new SvcError('config_invalid', 'The public key of the seals is not known.', {
    why: 'Seals are verified with the key whose private half has signed them.',
    state: 'Nothing was verified.',
    next: [
      'svc approvals seal --public-key    prints it, where approvals.seals.key is set',
      'svc approvals verify --key <file>    verifies with it, as approvals.seals.publicKeys does',
    ],
  });
}

async function assertReadable(path: string): Promise<void> {
  try {
    await access(path);
  } catch (error) {
    throw new SvcError('file_invalid', 'A file with seals cannot be read.', {
      why: systemErrorCode(error) ?? errorMessage(error),
      state: 'Nothing was verified.',
      where: path,
    });
  }
}

function configuredPublicKeys({ config }: Pick<Runtime, 'config'>): readonly SealPublicKey[] {
  const { publicKeys = [] } = config.approvals?.seals ?? {};
  return publicKeys.map((text) => readSealPublicKey(text, 'approvals.seals.publicKeys'));
}

async function* readAll(sinks: readonly SealSink[], from: string): AsyncGenerator<unknown> {
  try {
    for (const sink of sinks) if (sink.read) yield* sink.read();
  } catch (error) {
    throw new SvcError('file_invalid', `The seals in ${from} cannot be read.`, {
      why: errorMessage(error),
      state: 'Nothing was verified.',
      cause: error,
    });
  }
}
