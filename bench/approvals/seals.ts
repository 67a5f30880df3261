import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decide } from '../../core/approval/decide.ts';
import { newRequestId } from '../../core/approval/request.ts';
import { EXPIRY_SHARDS } from '../../core/approval/schema.ts';
import { readSealKey } from '../../core/approval/seal/key.ts';
import { SealLog } from '../../core/approval/seal/seal-log.ts';
import { SealedAudit } from '../../core/approval/seal/sealed-audit.ts';
import { Sealer } from '../../core/approval/seal/sealer.ts';
import { newSealKey, openFileSink, rehashed } from '../../test/kit/sealed.ts';
import { connect, gateOn, nextCall, perSecond, serviceOn, storeRequest, toolsWith } from './stage.ts';

const OWNER = { product: 'bench', env: 'dev', database: 'main' } as const;

export interface SealTimes {
  readonly events: number;
  /** Seconds to seal all of them. */
  readonly first: number;
  /** Seconds to seal one new request. */
  readonly next: number;
  /** Seconds to read the seals from the file and to check their signatures. */
  readonly read: number;
}

/** Seals so many finished requests of three events each: copies of one that ran, each with its own id. */
export async function timeSeals(url: string, requests: number): Promise<SealTimes> {
  const backend = await connect(url);
  const service = await serviceOn(backend);
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  try {
    const gate = gateOn(
      service,
      toolsWith(() => 'paid'),
    );
    const pay = async () => {
      const { request, outcome } = await storeRequest(gate, nextCall());
      const { requestId, executionId } = request;
      await decide(service, { executionId, signal: 'approve', payload: { requestId } }, { actor: 'bench' });
      await outcome;
      return requestId;
    };
    const template = await service.read(await pay());
    if (!template) throw new Error('the request is not in the store');
    const events = template.record.body.events.length * requests;
    await perSecond(requests - 1, 64, async () => {
      const requestId = newRequestId();
      const shard = Number.parseInt(requestId.slice(-1), 16) % EXPIRY_SHARDS;
      await service.rows.insert(rehashed({ ...template.record, requestId, shard, executionId: `exe_${requestId}` }));
    });
    const key = readSealKey(newSealKey(), 'the bench');
    const file = openFileSink(join(folder, 'seals.jsonl'));
    const sealer = new Sealer(service, await SealLog.open(backend, OWNER, { key }, new Map([['file', file]])));
    const timeSeal = async (expected: number) => {
      const startedAt = performance.now();
      const report = await sealer.seal();
      if (report.requests !== expected) throw new Error(`${report.requests} requests were sealed, not ${expected}`);
      return (performance.now() - startedAt) / 1000;
    };
    const first = await timeSeal(requests);
    await pay();
    const next = await timeSeal(1);
    const startedAt = performance.now();
    const { check } = await SealedAudit.read({ from: 'the bench', keys: [key], ...OWNER, read: file.read });
    if (check.problems.length > 0) throw new Error(check.problems.join(' '));
    return { events, first, next, read: (performance.now() - startedAt) / 1000 };
  } finally {
    await service.close();
    await backend.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
