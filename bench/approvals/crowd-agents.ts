// Agents that make requests at a steady pace, each decided after a moment: `crowd-agents.ts <url> <requests a second>`.
import { setTimeout as wait } from 'node:timers/promises';
import { decide } from '../../core/approval/decide.ts';
import { connect, gateOn, nextCall, PARAMETERS, serviceOn, spread, storeRequest, toolsWith } from './stage.ts';

const THINKING_MS = 60;

const [url = '', perSecond = '100'] = process.argv.slice(2);
const service = await serviceOn(await connect(url));
const tools = toolsWith(() => 'paid');
const gate = gateOn(service, tools);
let times: number[] = [];
let failures = 0;

/** One request; its time without that of the person. The note has when it began: the pages are compared with that. */
async function ask(): Promise<void> {
  const startedAt = performance.now();
  const parameters = { ...PARAMETERS, note: `at ${Date.now()}.` };
  const { request, outcome } = await storeRequest(gate, nextCall({ parameters }));
  const storedAt = performance.now();
  await wait(THINKING_MS);
  const decidedAt = performance.now();
  const { requestId, executionId } = request;
  await decide(service, { executionId, signal: 'approve', payload: { requestId } }, { actor: 'bench' });
  await outcome;
  times.push(storedAt - startedAt + performance.now() - decidedAt);
}

let begun = 0;
const startedAt = performance.now();
setInterval(() => {
  for (const due = ((performance.now() - startedAt) / 1_000) * Number(perSecond); begun < due; begun++) {
    ask().catch(() => {
      failures += 1;
    });
  }
}, 5);
// Each message asks for what was measured since the last one.
process.on('message', () => {
  process.send?.({ calls: times.length, failures, ...spread(times) });
  times = [];
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
