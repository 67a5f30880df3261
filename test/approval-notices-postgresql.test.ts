import * as assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { NoticeSweep } from '../core/approval/notices.ts';
import { newRequestId } from '../core/approval/request.ts';
import { bundleScript } from './kit/bundle.ts';
import { engines } from './kit/engines.ts';
import { eventsOf, gateOf, MINUTE, noticeRoute, rulesOf } from './kit/notices.ts';
import { test } from './kit/test.ts';
import { type ApprovalProcess, Bank, openApprovalProcess, readRow, refund } from './suites/approval-setup.ts';
import { waitUntil } from './suites/wait-until.ts';

// Many processes give the notices of one database, and die.

const engine = engines.find(({ name }) => name === 'postgresql')!;
if (engine.missing !== undefined) test.skip('notices on PostgreSQL', engine.missing);
else {
  test(
    'a process that gives a notice is killed at every write: another one gives it, and its event is one',
    () =>
      engine.withUrl(async (url, connect) => {
        const { connection } = await connect();
        await connection.query('CREATE TABLE sent (notice text)');
        const rules = rulesOf({ remind: [300] });
        const app = await openApprovalProcess(connection, undefined, rules);
        const sweep = new NoticeSweep(app.service);
        const route = noticeRoute('chat', async (_announcement, { id }) => {
          await connection.query(`INSERT INTO sent VALUES ('${id}')`);
        });
        sweep.add('payouts', [route]);
        const sentOf = (requestId: string) =>
          connection.query(`SELECT * FROM sent WHERE notice = '${requestId}_1'`) as Promise<readonly unknown[]>;
        const script = await bundleScript('notice-process.ts');

        const killedAt = async (killPoint: string): Promise<'died' | 'survived'> => {
          const requestId = newRequestId();
          const child = fork(script, [url, JSON.stringify(rules), requestId, killPoint], { execArgv: [] });
          let signal: string | null | undefined;
          const ended = once(child, 'exit').then(([, by]) => {
            signal = by;
          });
          const isGiven = async () =>
            (await sentOf(requestId)).length > 0 && (await app.service.notices.get(requestId)) === undefined;
          await waitUntil(async () => signal !== undefined || (await isGiven()), killPoint);
          if (signal === undefined) child.kill('SIGKILL');
          const died = signal !== undefined;
          await ended;
          const stored = await app.service.read(requestId);
          for (
            let timer = await app.service.notices.get(requestId);
            timer;
            timer = await app.service.notices.get(requestId)
          ) {
            // As if the time had passed in which no other process gives it.
            const due = { ...timer.record, dueAt: new Date(timer.record.dueAt.getTime() - 10 * MINUTE) };
            await app.service.notices.replace(requestId, timer.version, due);
            if (stored)
              await waitUntil(
                async () => (await app.service.clock.readNow()) > Date.parse(stored.record.body.timestamp) + 300,
                'due',
              );
            await sweep.sweep();
          }
          const sent = (await sentOf(requestId)).length;
          if (stored) {
            // Killed after the message was sent and before that was stored: it is sent again.
            if (killPoint === 'sent') assert.equal(sent, 2, killPoint);
            else assert.equal(sent, 1, killPoint);
            assert.deepEqual(await eventsOf(app, { requestId }), ['reminded'], killPoint);
            await app.service.cancel((await app.service.read(requestId))!, 'the end', 'test');
          } else assert.equal(sent, 0, killPoint);
          return died ? 'died' : 'survived';
        };

        try {
          assert.equal(await killedAt('notified'), 'died');
          assert.equal(await killedAt('sent'), 'died');
          let last: 'died' | 'survived' = 'died';
          let count = 0;
          for (count = 1; last === 'died'; count += 1) {
            assert.ok(count < 60, 'it survives at last');
            last = await killedAt(`written:${count}`);
          }
          assert.ok(count > 8, `only ${count} writes`);
        } finally {
          await app.service.close();
          await sweep.close();
        }
      }),
    { timeoutMs: 300_000 },
  );

  test('PostgreSQL: five connections that find many notices at the same time give each once', () =>
    engine.withUrl(async (_url, connect) => {
      const apps: ApprovalProcess[] = [];
      for (let count = 0; count < 5; count += 1)
        apps.push(await openApprovalProcess((await connect()).connection, undefined, rulesOf({ remind: [1_000] })));
      const given = new Map<string, number>();
      const route = noticeRoute('chat', async (_announcement, { id }) => {
        given.set(id, (given.get(id) ?? 0) + 1);
      });
      const [first] = apps as [ApprovalProcess];
      const gate = gateOf(first, new Bank(), [route]);
      const requestIds = Array.from({ length: 40 }, () => newRequestId());
      try {
        await Promise.all(
          requestIds.map((requestId) => gate.callOrLeave(refund(undefined, { requestId }), { waitMs: 0 })),
        );
        for (const requestId of requestIds) {
          const timer = await first.service.notices.get(requestId);
          assert.ok(timer);
          const dueAt = new Date(timer.record.dueAt.getTime() - MINUTE);
          await first.service.notices.replace(requestId, timer.version, { ...timer.record, dueAt });
        }
        const last = await readRow(first, { requestId: requestIds.at(-1)! });
        const due = Date.parse(last.record.body.timestamp) + 1_000;
        await waitUntil(async () => (await first.service.clock.readNow()) > due, 'they are due');
        const sweeps = apps.map((app) => {
          const sweep = new NoticeSweep(app.service);
          sweep.add('payouts', [route]);
          return sweep;
        });
        await Promise.all(sweeps.map((sweep) => sweep.sweep()));
        await Promise.all(sweeps.map((sweep) => sweep.close()));
        assert.deepEqual(new Set(given.keys()), new Set(requestIds.map((requestId) => `${requestId}_1`)));
        assert.deepEqual(new Set(given.values()), new Set([1]));
        for (const requestId of requestIds) assert.equal(await first.service.notices.get(requestId), undefined);
      } finally {
        await Promise.all(apps.map((app) => app.service.close()));
      }
    }));
}
