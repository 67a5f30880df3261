// Waits for a decision in its own process and reports when its handler started: `waiter.ts <url>`.
import { connect, gateOn, nextCall, serviceOn, storeRequest, toolsWith } from './stage.ts';

const now = (): number => performance.timeOrigin + performance.now();
const service = await serviceOn(await connect(process.argv[2] ?? ''));
let startedAt = 0;
const gate = gateOn(
  service,
  toolsWith(() => {
    startedAt = now();
  }),
);

process.on('message', async () => {
  const { request, outcome } = await storeRequest(gate, nextCall());
  process.send?.({ request });
  await outcome;
  process.send?.({ startedAt });
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
