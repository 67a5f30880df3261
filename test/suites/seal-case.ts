import * as assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { pruneApprovals, verifyAudit } from '../../core/approval/audit.ts';
import { readSealKey } from '../../core/approval/seal/key.ts';
import { proofProblems } from '../../core/approval/seal/proof.ts';
import { proveRequest } from '../../core/approval/seal/prove.ts';
import { isSeal, type Seal } from '../../core/approval/seal/seal.ts';
import { SealLog } from '../../core/approval/seal/seal-log.ts';
import { Sealer } from '../../core/approval/seal/sealer.ts';
import { uncheckedSeals } from '../../core/approval/seal/stored-seals.ts';
import {
  type ApprovalProcess,
  approve,
  Bank,
  compileTestTools,
  createGate,
  OWNER,
  readRow,
  refund,
  startCall,
} from './approval-setup.ts';
import { waitUntil } from './wait-until.ts';

/** Two processes seal a store at once, and what is changed, removed or put back there is found by the seals. */
export async function sealCase(open: () => Promise<ApprovalProcess>): Promise<void> {
  const [app, other] = await Promise.all([open(), open()]);
  const der = generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' });
  const key = readSealKey(der.toString('base64'), 'a test');
  const kept: Seal[] = [];
  const sink = {
    write: async (seal: Seal) => void kept.push(structuredClone(seal)),
  };
  const sealerOf = async ({ service }: ApprovalProcess) =>
    new Sealer(service, await SealLog.open(service.backend, OWNER, { key }, new Map([['memory', sink]])));
  const sealers = [await sealerOf(app), await sealerOf(other)] as const;
  const gate = createGate(app, compileTestTools(new Bank().tool()));
  const calls = await Promise.all([3, 4, 5, 6].map((amount) => startCall(gate, refund({ order: 'a', amount }))));
  const ids = calls.map(({ request }) => request.requestId);
  const rowOf = async (index: number) => readRow(app, { requestId: ids[index] ?? '' });
  const sealAll = async (index: number, events: number) => {
    // Two at once, and indexes of some engines lag.
    const isSealed = async () => {
      await Promise.allSettled(sealers.map((sealer) => sealer.seal()));
      return (await proveRequest(app.service, (await rowOf(index)).record, [key]))?.events.length === events;
    };
    await waitUntil(isSealed, `Request ${index} is not sealed.`);
  };
  for (const index of ids.keys()) await sealAll(index, 0);
  for (const { request, outcome } of calls.slice(0, 3)) {
    await approve(app, request);
    await outcome;
  }
  for (const index of [0, 1, 2]) await sealAll(index, (await rowOf(index)).record.body.events.length);
  const proof = await proveRequest(app.service, (await rowOf(0)).record, [key]);
  assert.deepEqual(proof && proofProblems(proof, [key]), []);

  const { product, env } = OWNER;
  const source = { from: 'memory', keys: [key], product, env, read: () => uncheckedSeals(app.service.backend) };
  const problems = async () => {
    const { broken, seals } = await verifyAudit(app.service, {}, source);
    assert.deepEqual(seals?.problems, []);
    return broken.filter(({ requestId }) => ids.includes(requestId)).map(({ requestId }) => ids.indexOf(requestId));
  };
  assert.deepEqual(await problems(), []);
  // Every seal reached the sink, once at least.
  await sealers[0].seal();
  const numbers = new Set(kept.map(({ seal }) => seal));
  for await (const seal of uncheckedSeals(app.service.backend)) assert.ok(isSeal(seal) && numbers.has(seal.seal));

  // Put back to what it was before the decision: every hash fits.
  const approved = await rowOf(0);
  const { head, decision, outcome, ...body } = approved.record.body;
  const before = { ...approved.record, status: 'waiting', body: { ...body, run: 'none', events: [] } } as const;
  await app.service.rows.replace(ids[0]!, approved.version, before);
  assert.deepEqual(await problems(), [0]);
  // Removed by other means than prune, and by prune.
  const removed = await rowOf(1);
  await app.service.rows.remove(ids[1]!, removed.version);
  assert.deepEqual((await problems()).sort(), [0, 1]);
  await waitUntil(async () => {
    await pruneApprovals(app.service, { olderThanMs: 0 }, async () => false, { sealer: sealers[0], source }).catch(
      (error) => assert.equal(error.code, 'audit_broken'),
    );
    return (await app.service.read(ids[2]!)) === undefined;
  }, 'The request is not pruned.');
  assert.deepEqual((await problems()).sort(), [0, 1]);
}
