import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { compileRules } from '../../config/load/approval-rules.ts';
import { requestDigest } from '../../core/approval/approved-parameters.ts';
import type { StorageBackend } from '../../core/approval/backend.ts';
import { withEvent, withOrigin } from '../../core/approval/event-chain.ts';
import type { ApprovalRow } from '../../core/approval/schema.ts';
import { readSealKey, type SealKey } from '../../core/approval/seal/key.ts';
import { SealLog, type SealSinks } from '../../core/approval/seal/seal-log.ts';
import type { SealSource } from '../../core/approval/seal/sealed-audit.ts';
import { Sealer } from '../../core/approval/seal/sealer.ts';
import type { SealSink } from '../../core/approval/seal/sink.ts';
import { Kernel } from '../../core/kernel.ts';
import { applyPlugin } from '../../core/plugin.ts';
import fileSink from '../../plugins/sinks/file.ts';
import { type ApprovalProcess, OWNER } from '../suites/approval-setup.ts';
import { folder } from './folder.ts';
import { person } from './notices.ts';

/** A private key as approvals.seals.key takes it. */
export const newSealKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');

export function openFileSink(path: string): SealSink & Required<Pick<SealSink, 'read' | 'last'>> {
  const kernel = new Kernel();
  applyPlugin(kernel, fileSink, 'built in');
  const sink = kernel.sealSinks.get('file')({ root: '/', path });
  const { read, last } = sink;
  if (!read || !last) throw new Error('The sink cannot be read.');
  return { ...sink, read, last };
}

export interface Sealed {
  readonly key: SealKey;
  readonly sealer: Sealer;
  readonly log: SealLog;
  /** The file with the seals. */
  readonly file: string;
  /** What the file has. */
  readonly source: SealSource;
}

/** What seals a store, with a file as its sink. */
export async function openSealed(
  { service }: ApprovalProcess,
  {
    file = join(folder(), 'seals.jsonl'),
    key = readSealKey(newSealKey(), 'a test'),
    sinks = new Map([['file', openFileSink(file)]]),
  }: { readonly file?: string; readonly key?: SealKey; readonly sinks?: SealSinks } = {},
): Promise<Sealed> {
  const backend: StorageBackend = service.backend;
  const log = await SealLog.open(backend, OWNER, { key }, sinks);
  const { product, env } = OWNER;
  const source = { from: file, keys: [key], product, env, read: () => openFileSink(file).read() };
  return { key, log, sealer: new Sealer(service, log), file, source };
}

/** The row with all hashes computed again, as if svc had stored these events. */
export function rehashed(row: ApprovalRow): ApprovalRow {
  const { votes, decision, outcome, head, ...rest } = row.body;
  const digest = requestDigest(row);
  const origin = withOrigin({ ...row, status: 'waiting', body: { ...rest, digest, run: 'none', events: [] } });
  return row.body.events.reduce((before, { prev, state, was, ...event }) => {
    const { events, head: linked } = before.body;
    const body = { ...row.body, digest, events, ...(linked !== undefined && { head: linked }) };
    return withEvent(before, { ...row, body }, event);
  }, origin);
}

/** Above 10, two people of finance approve. */
export const twoOfFinance = compileRules({
  roles: { finance: ['group:finance'] },
  rules: [{ match: { where: { amount: { gt: 10 } } }, approve: [{ role: 'finance', count: 2 }] }],
}).rules;

export const ofFinance = (id: string) => person(id, 'finance');
