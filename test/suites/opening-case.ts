import * as assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { ErrorCode } from '../../core/error-codes.ts';
import { isSvcError } from '../../core/errors.ts';
import type { DeclareDialectCase } from './dialect-case.ts';
import type { DialectUnderTest } from './dialect-under-test.ts';
import { freePort } from './free-port.ts';
import { describeTestError, withTimeout } from './suite.ts';
import { timersOf } from './timers-of.ts';
import { waitUntil } from './wait-until.ts';

/** A dialect may try several times, each for as long as `connectTimeoutMs`. */
const CONNECT_MS = 3_000;
/** How long what it has started may last after that. */
const LEFT_MS = 2_000;
const REJECT_MS = 20_000;
const NO_URL = 'no url';

/** URLs that cannot be opened. */
export function openingCase(on: DeclareDialectCase, engine: DialectUnderTest): void {
  const { dialect, options = {}, urlAt, badUrls = {} } = engine;
  on(
    'a database that cannot be opened is an error',
    '`identify` and `connect` reject a text that is not a URL with `url_invalid`. `connect` rejects a server that is not there, or does not answer, with `connection_failed` after `connectTimeoutMs`, and each of `badUrls` with its code. A failed `connect` leaves no connection and no timer that keeps the program running.',
    async () => {
      const assertRejected = (what: string, code: ErrorCode, open: () => Promise<unknown>) =>
        withTimeout(REJECT_MS, what, async () => {
          const found = await open().then(
            () => undefined,
            (error: unknown) => error,
          );
          const message = found === undefined ? 'it was opened' : describeTestError(found);
          assert.ok(isSvcError(found) && found.code === code, `${what} is not rejected with ${code}: ${message}`);
        });
      const assertConnectRejected = (url: string, code: ErrorCode) =>
        assertRejected(`connect('${url}')`, code, async () => {
          const connection = await dialect.connect(url, { ...options, connectTimeoutMs: CONNECT_MS });
          await connection.close();
        });
      await assertRejected(`identify('${NO_URL}')`, 'url_invalid', async () => dialect.identify(NO_URL));
      await assertConnectRejected(NO_URL, 'url_invalid');
      for (const [url, code] of Object.entries(badUrls)) await assertConnectRejected(url, code);
      if (!urlAt) return;
      await assertConnectRejected(urlAt(await freePort()), 'connection_failed');
      const accepted: Socket[] = [];
      /** Those that the dialect has not closed. */
      const sockets = new Set<Socket>();
      // It does not close its side either.
      const silent = createServer({ allowHalfOpen: true }, (socket) => {
        accepted.push(socket);
        sockets.add(socket);
        const remove = () => sockets.delete(socket);
        socket.on('error', remove).on('end', remove).on('close', remove).resume();
      });
      await once(silent.listen(0, '127.0.0.1'), 'listening');
      try {
        const url = urlAt((silent.address() as AddressInfo).port);
        const timers = await timersOf(() => assertConnectRejected(url, 'connection_failed'));
        const left = () => [
          ...(sockets.size > 0 ? ['a connection'] : []),
          ...(timers().some((timer) => timer.hasRef()) ? ['a timer'] : []),
        ];
        const hasEnded = waitUntil(() => left().length === 0, '', LEFT_MS);
        await hasEnded.catch(() => assert.fail(`connect('${url}') failed, and left ${left().join(' and ')}`));
      } finally {
        for (const socket of accepted) socket.destroy();
        await new Promise((closed) => silent.close(closed));
      }
    },
  );
}
