import { connect } from 'node:net';

/** Sends bytes and gives the one frame that answers; `length` says how long it is once its head of `head` bytes is there. */
export type Say = (bytes: Uint8Array, head: number, length: (head: Buffer) => number) => Promise<Buffer>;

/** Long enough for a server that shares two cores with the tests, and short where a port swallows what is sent. */
export const PATIENCE_MS = 5_000;
/** No greeting is longer: what claims to be speaks something else. */
const MOST = 1_048_576;

/** A conversation in bare frames, because drivers retry for long, and some never end where another protocol answers. */
export async function talk<T>(address: string, port: number, work: (say: Say) => Promise<T>): Promise<T> {
  const socket = connect(port, address);
  const late = new Error(`no answer within ${PATIENCE_MS} ms`);
  const timer = setTimeout(() => socket.destroy(late), PATIENCE_MS);
  const say: Say = (bytes, head, length) =>
    new Promise((answer, fail) => {
      let got = Buffer.alloc(0);
      const read = (part: Buffer): void => {
        got = Buffer.concat([got, part]);
        if (got.length < head) return;
        const whole = length(got);
        if (whole < head || whole > MOST)
          fail(new Error(`it answers ${JSON.stringify(got.toString('latin1', 0, 40))}`));
        else if (got.length >= whole) answer(got.subarray(0, whole));
      };
      socket.removeAllListeners().on('data', read).on('error', fail);
      socket.on('close', () => fail(new Error('it closed the connection')));
      socket.write(bytes);
    });
  try {
    return await work(say);
  } finally {
    clearTimeout(timer);
    socket.removeAllListeners().on('error', () => {});
    socket.destroy();
  }
}
