import { setTimeout as wait } from 'node:timers/promises';
import { quote } from './grammar.ts';
import { openServer, type ServerSession } from './server.ts';
import { PATIENT, type Settings } from './settings.ts';

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 10_000;

/** LISTEN on a connection of its own. What came while it was lost is lost: after it is back there is one hint more. */
export async function watchServer(
  url: string,
  settings: Settings,
  channel: string,
  hint: (key?: string) => void,
): Promise<() => Promise<void>> {
  const stopped = new AbortController();
  let session = await listen(url, settings, channel, hint, again);
  async function again(): Promise<void> {
    for (let pause = FIRST_RETRY_MS; !stopped.signal.aborted; pause = Math.min(pause * 2, LONGEST_RETRY_MS)) {
      try {
        await wait(pause, undefined, { signal: stopped.signal, ref: false });
        session = await listen(url, settings, channel, hint, again);
        if (stopped.signal.aborted) await session.close();
        hint();
        return;
      } catch {
        // Tried again after a longer pause; whoever watches polls as well.
      }
    }
  }
  return async () => {
    stopped.abort();
    session.client.removeAllListeners('end');
    await session.close();
  };
}

async function listen(
  url: string,
  settings: Settings,
  channel: string,
  hint: (key?: string) => void,
  lost: () => Promise<void>,
): Promise<ServerSession> {
  const session = await openServer(url, settings);
  session.client.on('notification', ({ payload }) => hint(payload === '' ? undefined : payload));
  await session.exec(`SELECT ${PATIENT}; LISTEN ${quote(channel)}`);
  session.client.once('end', () => void lost());
  return session;
}
