// Waits in a process of its own and says when its handler began: `waiter.ts <url>`.
import { connect, gateOn, nextCall, serviceOn, stored, toolsWith } from './stage.ts';

const now = (): number => performance.timeOrigin + performance.now();
const service = await serviceOn(await connect(process.argv[2] ?? ''));
let began = 0;
const gate = gateOn(
  service,
  toolsWith(() => {
    began = now();
  }),
);

process.on('message', async () => {
  const { request, outcome } = await stored(gate, nextCall());
  process.send?.({ request });
  await outcome;
  process.send?.({ began });
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
