// A process with an agent of a framework: `process.ts <host> <folder> start|hold|resume`. It is killed while its request waits, or
// kills itself after the effect.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openClient, openRun } from './run.ts';

const [host = '', folder = '', phase = ''] = process.argv.slice(2);
const svc = openClient(folder);
const state = join(folder, 'state');
if (phase === 'hold') {
  const onRequested = ({ requestId }: { readonly requestId: string }) => process.stdout.write(`${requestId}\n`);
  await (await openRun(svc, host, folder, { wait: 'hold', onRequested })).start();
} else if (phase === 'start') {
  let requestId = '';
  const onRequested = (request: { readonly requestId: string }) => {
    ({ requestId } = request);
  };
  const suspended = await (await openRun(svc, host, folder, { onRequested })).start();
  writeFileSync(state, suspended.state);
  process.stdout.write(`${requestId}\n`);
  setInterval(() => {}, 60_000);
} else {
  await (await openRun(svc, host, folder, { difference: 'kill after the effect' })).resume(readFileSync(state, 'utf8'));
}
