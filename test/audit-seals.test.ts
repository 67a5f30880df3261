import * as assert from 'node:assert/strict';
import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pruneApprovals, verifyAudit } from '../core/approval/audit.ts';
import { headOf } from '../core/approval/event-chain.ts';
import { recordReveal } from '../core/approval/reveal.ts';
import { readSealKey } from '../core/approval/seal/key.ts';
import { merklePath, merkleRoot, rootOfPath } from '../core/approval/seal/merkle.ts';
import { type AuditProof, isProof, proofProblems } from '../core/approval/seal/proof.ts';
import { proveRequest } from '../core/approval/seal/prove.ts';
import { openRequests, seals } from '../core/approval/seal/schema.ts';
import type { Seal } from '../core/approval/seal/seal.ts';
import type { SealSink } from '../core/approval/seal/sink.ts';
import { allRows } from '../core/records.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { folder } from './kit/folder.ts';
import { newSealKey, ofFinance, openFileSink, openSealed, type Sealed, twoOfFinance } from './kit/sealed.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  approve,
  Bank,
  compileTestTools,
  createGate,
  openApprovalProcess,
  readRow,
  refund,
  reject,
  startCall,
} from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test('the tree is that of RFC 9162: the roots of its reference tests', () => {
  const leaves = ['', '\x00', '\x10', ' !', '01', '@ABC', 'PQRSTUVW', '`abcdefghijklmno'];
  const roots = [
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
    'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
    '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
    'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
    '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
  ];
  for (const [size, root] of roots.entries()) {
    const some = leaves.slice(0, size);
    assert.equal(Buffer.from(merkleRoot(some), 'base64url').toString('hex'), root, `${size} leaves`);
    for (const [index, leaf] of some.entries()) {
      assert.equal(rootOfPath(leaf, merklePath(some, index)), merkleRoot(some), `leaf ${index} of ${size}`);
      assert.notEqual(rootOfPath(`${leaf}x`, merklePath(some, index)), merkleRoot(some));
    }
  }
});

interface Shop extends Sealed {
  readonly app: ApprovalProcess;
  readonly store: MemoryStore;
  /** Moves the clock of the store. */
  pass(ms: number): Promise<void>;
  /** Starts a call that waits. */
  start(amount: number): ReturnType<typeof startCall>;
  verify(): ReturnType<typeof verifyAudit>;
  open(): Promise<string[]>;
}

async function withShop(body: (shop: Shop) => Promise<void>): Promise<void> {
  let ahead = 0;
  const store = new MemoryStore(() => Date.now() + ahead);
  const app = await openApprovalProcess(store, undefined, twoOfFinance);
  const sealed = await openSealed(app);
  const parameters = {
    order: { type: 'string', required: true },
    amount: { type: 'number', required: true },
    card: { type: 'string', sensitive: true },
  } as const;
  const humanInLoop = { approvalTimeout: 10 * DAY, approvalValidFor: 10 * DAY };
  const gate = createGate(app, compileTestTools(new Bank().tool({ parameters })), { humanInLoop });
  try {
    await body({
      ...sealed,
      app,
      store,
      async pass(ms) {
        ahead += ms;
        await app.service.clock.readNow();
      },
      start: (amount) => startCall(gate, refund({ order: '1', amount, ...(amount === 1 && { card: '4111' }) })),
      verify: () => verifyAudit(app.service, {}, sealed.source),
      async open() {
        const open: string[] = [];
        for await (const { record } of allRows(store.records(openRequests), 'byState', {
          equals: { state: 'open' },
          limit: 100,
        }))
          open.push(record.requestId);
        return open;
      },
    });
  } finally {
    await app.service.close();
  }
}

const lines = ({ file }: Pick<Sealed, 'file'>): Seal[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

test('each search seals what is new, in the store and in the file, and what is sealed fits', () =>
  withShop(async (shop) => {
    const { app, sealer, start, verify, pass } = shop;
    assert.deepEqual(await sealer.seal(), { last: 1, seals: 1, requests: 0, events: 0 });
    const one = await start(20);
    const other = await start(5);
    assert.deepEqual(await sealer.seal(), { last: 2, seals: 1, requests: 2, events: 0 });
    assert.deepEqual(await sealer.seal(), { last: 2, seals: 0, requests: 0, events: 0 });
    await approve(app, one.request, undefined, ofFinance('ann'));
    assert.deepEqual(await sealer.seal(), { last: 3, seals: 1, requests: 1, events: 1 });
    await approve(app, one.request, undefined, ofFinance('bo'));
    await one.outcome;
    await reject(app, other.request);
    await other.outcome;
    const { checked, broken, seals } = await verify();
    assert.deepEqual([checked, broken, seals?.unsealed, seals?.problems], [2, [], 2, []]);
    const { requests, events } = await sealer.seal();
    const count = async (request: { readonly requestId: string }) =>
      (await readRow(app, request)).record.body.events.length;
    assert.equal(requests, 2);
    assert.equal(events, (await count(one.request)) - 1 + (await count(other.request)));
    // A search that began before, and was slow, may seal less.
    await pass(HOUR);
    await sealer.seal({ all: true });
    const slow = (await readRow(app, one.request)).record;
    const { requestId } = slow;
    await shop.log.append({
      at: new Date(0).toISOString(),
      requests: [{ requestId, events: 1, head: headOf(slow, 1) }],
    });
    await shop.log.send();
    assert.deepEqual((await verify()).broken, []);
    const { seals: now } = await verify();
    assert.deepEqual([now?.last, now?.seals, now?.unsealed, now?.problems], [6, 6, 0, []]);
    assert.deepEqual(
      lines(shop).map(({ seal, size }) => [seal, size]),
      [
        [1, 0],
        [2, 2],
        [3, 1],
        [4, 2],
        [5, 0],
        [6, 1],
      ],
    );
    // Once an hour, a seal says that nothing was new.
    await pass(2 * DAY);
    assert.deepEqual(await sealer.seal(), { last: 7, seals: 1, requests: 0, events: 0 });
    assert.deepEqual(await shop.open(), []);
  }));

test('an event is found however late it comes', () =>
  withShop(async ({ app, store, sealer, start, verify, pass, open }) => {
    const call = await start(1);
    const voted = await start(20);
    await sealer.seal();
    assert.equal((await open()).length, 2);
    // After days in which nothing happened, and searches that found nothing.
    for (let days = 0; days < 3; days += 1) {
      await pass(DAY);
      await sealer.seal();
    }
    assert.deepEqual(await open(), []);
    await approve(app, voted.request, undefined, ofFinance('ann'));
    await sealer.seal();
    await pass(3 * HOUR);
    await approve(app, voted.request, undefined, ofFinance('bo'));
    await voted.outcome;
    await sealer.seal();
    const reviewToken = (await readRow(app, call.request)).record.body.digest;
    await approve(app, call.request, undefined, { actor: 'ann', reviewToken });
    await call.outcome;
    await pass(30 * MINUTE);
    await sealer.seal();
    // Also after the result.
    await recordReveal(app.service, await readRow(app, call.request), ofFinance('eve'));
    await recordReveal(app.service, await readRow(app, call.request), ofFinance('bo'));
    assert.deepEqual((await sealer.seal()).requests, 1);
    // A search that comes between the announcement of an event and its write does not forget it.
    const { requestId } = voted.request;
    await store.records(openRequests).insert({ requestId, state: 'open', at: await store.now(), seal: 0 });
    await sealer.seal();
    assert.deepEqual(await open(), [call.request.requestId, requestId]);
    await pass(11 * MINUTE);
    await sealer.seal();
    assert.deepEqual(await open(), [call.request.requestId]);
    // Nor one that already knows the request.
    await pass(13 * HOUR);
    await recordReveal(app.service, await readRow(app, call.request), ofFinance('cy'));
    const announced = await store.records(openRequests).get(call.request.requestId);
    assert.ok((await store.now()).getTime() - (announced?.record.at.getTime() ?? 0) < MINUTE);
    await pass(3 * DAY);
    await sealer.seal();
    assert.deepEqual(await open(), []);
    const { broken, seals } = await verify();
    assert.deepEqual([broken, seals?.problems, seals?.unsealed], [[], [], 0]);
  }));

test('a request whose id is older than it is sealed too', () =>
  withShop(async ({ app, sealer, start, verify, pass }) => {
    await sealer.seal();
    // The id has the time of this process, and the store is five hours ahead.
    await pass(5 * HOUR);
    await sealer.seal();
    const { request } = await start(5);
    await pass(5 * HOUR);
    assert.equal((await sealer.seal()).requests, 1);
    await approve(app, request);
    await pass(HOUR);
    await sealer.seal();
    assert.deepEqual((await verify()).broken, []);
  }));

test('what prune removes is sealed first, and a request that is removed otherwise is missed', () =>
  withShop(async ({ app, sealer, source, start, verify, pass }) => {
    const calls = [await start(5), await start(6), await start(7)] as const;
    for (const { request, outcome } of calls.slice(0, 2)) {
      await approve(app, request);
      await outcome;
    }
    await sealer.seal();
    await pass(DAY);
    const prune = () => pruneApprovals(app.service, { olderThanMs: HOUR }, async () => false, { sealer, source });
    // A seal of its removal would hide that it was changed.
    const tampered = await readRow(app, calls[0].request);
    const { body } = tampered.record;
    const events = body.events.slice(0, 1);
    await app.service.rows.replace(tampered.record.requestId, tampered.version, {
      ...tampered.record,
      body: { ...body, events },
    });
    const refused = await expectError(prune(), 'audit_broken');
    assert.match(refused.state ?? '', /^Removed: 1 others/);
    await app.service.rows.replace(tampered.record.requestId, tampered.version + 1, tampered.record);
    assert.equal(await prune(), 1);
    assert.equal(await prune(), 0);
    const { broken, seals } = await verify();
    assert.deepEqual([broken, seals?.removed, seals?.problems], [[], 2, []]);
    const { requestId } = calls[2].request;
    await app.service.rows.remove(requestId, (await readRow(app, { requestId })).version);
    assert.deepEqual((await verify()).broken, [
      { requestId, problems: ['The request was removed, and not by svc approvals prune.'] },
    ]);
  }));

test('a proof needs no store, and any change of it is found', () =>
  withShop(async ({ app, sealer, start, key }) => {
    for (let amount = 2; amount < 9; amount += 1) await start(amount);
    const { request, outcome } = await start(20);
    const row = async () => (await readRow(app, request)).record;
    assert.equal(await proveRequest(app.service, await row(), [key]), undefined);
    await approve(app, request, undefined, ofFinance('ann'));
    await sealer.seal();
    await approve(app, request, undefined, ofFinance('bo'));
    await outcome;
    const proof = await proveRequest(app.service, await row(), [key]);
    assert.ok(isProof(JSON.parse(JSON.stringify(proof))) && proof);
    assert.deepEqual(proofProblems(proof, [key]), []);
    assert.deepEqual(
      [proof.events.length, proof.call?.parameters, proof.path.length],
      [1, { order: '1', amount: 20 }, 3],
    );
    const other = readSealKey(newSealKey(), 'a test');
    await expectError((async () => proofProblems(proof, [other]))(), 'config_invalid');
    const copy = (change: (proof: { -readonly [K in keyof AuditProof]: AuditProof[K] }) => void) => {
      const changed = structuredClone(proof);
      change(changed);
      return proofProblems(changed, [key]);
    };
    const [event] = proof.events;
    const changes: Readonly<Record<string, readonly string[]>> = {
      call: copy((one) => (one.call = { ...proof.call!, parameters: { order: '1', amount: 2000 } })),
      request: copy((one) => (one.request = { ...proof.request, requester: 'eve' })),
      event: copy((one) => (one.events = [{ ...event!, by: 'eve' }])),
      'no event': copy((one) => (one.events = [])),
      'one more': copy((one) => (one.events = [event!, event!])),
      sealed: copy((one) => (one.sealed = { ...proof.sealed, head: proof.seal.root })),
      path: copy((one) => (one.path = proof.path.toReversed())),
      seal: copy((one) => (one.seal = { ...proof.seal, at: new Date(0).toISOString() })),
      signature: copy((one) => (one.seal = { ...proof.seal, signature: Buffer.alloc(64).toString('base64url') })),
    };
    for (const [name, problems] of Object.entries(changes)) assert.notDeepEqual(problems, [], name);
    await sealer.seal();
    const now = await proveRequest(app.service, await row(), [key]);
    assert.deepEqual(
      now?.events.map(({ type }) => type),
      (await row()).body.events.map(({ type }) => type),
    );
    assert.deepEqual(proofProblems(now!, [key]), []);
    // The call of a request with sensitive parameters is not in its proof.
    const secret = await start(1);
    await sealer.seal();
    const masked = await proveRequest(app.service, (await readRow(app, secret.request)).record, [key]);
    assert.equal(masked?.call, undefined);
    assert.doesNotMatch(JSON.stringify(masked), /4111/);
    assert.deepEqual(proofProblems(masked!, [key]), []);
    // What was changed since is not proven.
    const { version, record } = await readRow(app, request);
    const body = { ...record.body, requester: 'eve' };
    await app.service.rows.replace(request.requestId, version, { ...record, body });
    await expectError(proveRequest(app.service, { ...record, body }, [key]), 'audit_broken');
  }));

test('a sink that was away gets what it lacks, once each and in order', () =>
  withShop(async ({ app, start, key, file }) => {
    let isDown = true;
    const taken: number[] = [];
    const fails: SealSink = {
      async write({ seal }) {
        if (isDown) throw new Error('503');
        taken.push(seal);
      },
    };
    const sinks = new Map([
      ['file', openFileSink(file)],
      ['hook', fails],
    ]);
    const { sealer, source } = await openSealed(app, { key, file, sinks });
    await start(5);
    const error = await expectError(sealer.seal(), 'seal_undelivered');
    assert.match(error.message, /"hook".* did not take seal 1/);
    await start(6);
    // Nothing is sealed that a sink would not get.
    await expectError(sealer.seal(), 'seal_undelivered');
    isDown = false;
    assert.deepEqual(await sealer.seal(), { last: 2, seals: 1, requests: 1, events: 0 });
    await sealer.seal();
    assert.deepEqual(taken, [1, 2]);
    assert.deepEqual((await verifyAudit(app.service, {}, source)).seals?.problems, []);
    // A new file gets all of them.
    const copy = join(folder(), 'folder', 'copy.jsonl');
    const again = await openSealed(app, { key, file: copy });
    await again.sealer.seal();
    assert.deepEqual(lines(again), lines({ file }));
  }));

test('a line that a crash cut short is written again, and other files than those of the store are refused', () =>
  withShop(async (shop) => {
    const { app, sealer, start, verify, file, key } = shop;
    await start(5);
    await sealer.seal();
    await start(6);
    await sealer.seal();
    truncateSync(file, readFileSync(file).length - 40);
    await sealer.seal();
    const { broken, seals } = await verify();
    assert.deepEqual([broken, seals?.seals, seals?.problems], [[], 2, []]);
    // The store lacks what the sink has: somebody removed it, or restored a backup.
    const other = await openApprovalProcess(new MemoryStore());
    const sealed = await openSealed(other, { key, file });
    const error = await expectError(sealed.sealer.seal(), 'audit_broken');
    assert.match(error.why ?? '', /last seal of the sink is 2, which the store does not have/);
    // Or made others.
    const elsewhere = await openSealed(other, { key });
    for (let run = 0; run < 2; run += 1) await elsewhere.sealer.seal({ all: true });
    const differs = await expectError(sealed.sealer.seal(), 'audit_broken');
    assert.match(differs.why ?? '', /^Seal 2 of the store is not that of the sink/);
    const [, second] = readFileSync(elsewhere.file, 'utf8').split('\n');
    const [first] = readFileSync(file, 'utf8').split('\n');
    writeFileSync(file, `${first}\n${second}\n`);
    assert.deepEqual((await verify()).seals?.problems, ['Seal 2 does not follow the one before it.']);
    await other.service.close();
    writeFileSync(file, '{"hello":"world"}\n');
    await expectError(sealer.seal(), 'audit_broken');
    assert.equal(app.warnings.length, 0);
  }));

test('seals that were changed in the store are neither continued nor given to a sink', () =>
  withShop(async ({ store, sealer, start, log, file }) => {
    await start(5);
    await sealer.seal();
    await start(6);
    const rows = store.records(seals);
    const sealId = 'seal_000000000001';
    const found = (await rows.get(sealId))!;
    const { body } = found.record;
    const changes: Readonly<Record<string, object>> = {
      'It has other requests than were signed.': { ...body, requests: [] },
      'It is not what was signed.': { ...body, at: new Date(0).toISOString() },
      'It is damaged.': {},
    };
    let { version } = found;
    for (const [why, changed] of Object.entries(changes)) {
      await rows.replace(sealId, version, { ...found.record, body: changed as Seal });
      version += 1;
      const error = await expectError(log.append({ at: body.at, requests: [] }), 'audit_broken');
      assert.equal(error.why, why);
    }
    await expectError(sealer.seal(), 'audit_broken');
    assert.equal(lines({ file }).length, 1);
  }));

test('seals that are not what was signed, or do not follow each other, are named', () =>
  withShop(async (shop) => {
    const { sealer, start, verify, file } = shop;
    for (let amount = 2; amount < 6; amount += 1) {
      await start(amount);
      await sealer.seal();
    }
    const all = readFileSync(file, 'utf8').trimEnd().split('\n');
    const problems = async (changed: readonly string[]) => {
      writeFileSync(file, `${changed.join('\n')}\n`);
      return (await verify()).seals?.problems.join(' ');
    };
    assert.equal(await problems(all), '');
    assert.equal(await problems(all.flatMap((line) => [line, line])), '');
    assert.match((await problems(all.toSpliced(1, 1))) ?? '', /^Seal 2 is missing/);
    assert.match((await problems(all.slice(2))) ?? '', /^Seals 1 to 2 are missing/);
    assert.equal(await problems([...all, all[1]!]), '');
    const edit = (index: number, change: (seal: Record<string, unknown>) => object) =>
      problems(all.with(index, JSON.stringify(change(JSON.parse(all[index]!)))));
    assert.match((await edit(1, (seal) => ({ ...seal, at: '2020-01-01T00:00:00.000Z' }))) ?? '', /^Seal 2 is not what/);
    assert.match((await edit(1, (seal) => ({ ...seal, requests: [] }))) ?? '', /^Seal 2 has other requests/);
    await expectError(
      edit(1, (seal) => ({ ...seal, key: 'other' })),
      'config_invalid',
    );
    assert.match((await edit(1, () => ({ seal: 2 }))) ?? '', /^After seal 1 is something that is not a seal/);
    writeFileSync(file, `${all.join('\n')}\n`);
    appendFileSync(file, all[0]!.slice(0, 50));
    assert.deepEqual((await verify()).seals?.problems, []);
  }));
