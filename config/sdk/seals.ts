import { readSealKey, readSealPublicKey, type SealKey, type SealPublicKey } from '../../core/approval/seal/key.ts';
import { isSealed, SealLog, storedSeals } from '../../core/approval/seal/seal-log.ts';
import type { SealSource } from '../../core/approval/seal/sealed-audit.ts';
import { Sealer } from '../../core/approval/seal/sealer.ts';
import type { SealSink } from '../../core/approval/seal/sink.ts';
import { SvcError } from '../../core/errors.ts';
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
  const sinks = new Map<string, SealSink>();
  for (const name of Object.keys(runtime.config.approvals?.seals?.sinks ?? {}))
    sinks.set(name, await runtime.sealSink(name));
  const { service, backend, owner } = await openApprovals(runtime);
  return new Sealer(service, await SealLog.open(backend, owner, key, sinks));
}

/** The sealer of a store that is sealed, which must seal what is removed. Throws `seals_needed` where it is not configured. */
export async function sealerForRemoval(runtime: Runtime): Promise<Sealer | undefined> {
  if (runtime.config.approvals?.seals) return openSealer(runtime);
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
    const files = sealFiles.map((path) => open({ root: process.cwd(), path }));
    return { from: sealFiles.join(', '), keys, product, env, read: () => readAll(files) };
  }
  for (const name of Object.keys(seals?.sinks ?? {})) {
    const sink = await runtime.sealSink(name);
    if (sink.read) return { from: `the sink "${name}"`, keys, product, env, read: () => readAll([sink]) };
  }
  const { backend } = await openApprovals(runtime);
  return { from: 'the store itself', keys, product, env, read: () => storedSeals(backend) };
}

/** The keys of which one must have signed a seal. Throws `config_invalid` without one. */
export function sealPublicKeys(
  { config }: Pick<Runtime, 'config'>,
  given: readonly string[],
): readonly SealPublicKey[] {
  const { key, publicKeys = [] } = config.approvals?.seals ?? {};
  const keys =
    given.length > 0
      ? given.map((text) => readSealPublicKey(text, 'the public key'))
      : [
          ...(key === undefined ? [] : [readSealKey(key, 'approvals.seals.key')]),
          ...publicKeys.map((text) => readSealPublicKey(text, 'approvals.seals.publicKeys')),
        ];
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

async function* readAll(sinks: readonly SealSink[]): AsyncGenerator<unknown> {
  for (const sink of sinks) if (sink.read) yield* sink.read();
}
