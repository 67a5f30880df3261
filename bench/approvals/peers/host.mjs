import { setTimeout as wait } from 'node:timers/promises';
import { Effects } from './effects.mjs';
import { faults } from './faults.mjs';
import { figures } from './figures.mjs';

/*
 * One contender in its own process: `host.mjs <peer> <url> victim <before|after> <run>`, which dies in its
 * handler, or `… faults`, or `… figures <rounds> <waiting>`. Prints the results as JSON in the last line.
 */

const [peer, url, job, ...rest] = process.argv.slice(2);
const { default: contender } = await import(`./${peer}.mjs`);
const effects = await Effects.open(url, job === 'victim' ? rest[0] : undefined);
const context = { url, effects, contender, victim: job === 'victim' ? rest[1] : undefined, job };
const system = await contender.open(context);

if (job === 'victim') {
  const run = rest[1];
  await system.start(run);
  await system.decide(run, { approve: true });
  await wait(5_000);
  throw new Error('The handler should have killed the process.');
}
// A contender whose runs take long measures fewer.
const counts = rest.map((count) => Math.min(Number(count), contender.mostRuns ?? Number.POSITIVE_INFINITY));
const results = job === 'faults' ? await faults(system, context) : await figures(system, context, counts);
await new Promise((written) => process.stdout.write(`\n${JSON.stringify(results)}\n`, written));
process.exit(0);
