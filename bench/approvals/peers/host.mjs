import { setTimeout as wait } from 'node:timers/promises';
import { Effects } from './effects.mjs';
import { faults } from './faults.mjs';
import { figures } from './figures.mjs';

/*
 * One contender in a process of its own: `host.mjs <peer> <url> victim <before|after> <run>`, which dies in its
 * handler, or `… faults`, or `… figures <rounds> <waiting>`. What was found is the last line, as JSON.
 */

const [peer, url, what, ...more] = process.argv.slice(2);
const { default: contender } = await import(`./${peer}.mjs`);
const effects = await Effects.open(url, what === 'victim' ? more[0] : undefined);
const place = { url, effects, contender };
const system = await contender.open(place);

if (what === 'victim') {
  const run = more[1];
  await system.start(run);
  await system.decide(run, { approve: true });
  await wait(5_000);
  throw new Error('It was to die in its handler, and did not.');
}
const found = what === 'faults' ? await faults(system, place) : await figures(system, place, more.map(Number));
await new Promise((written) => process.stdout.write(`\n${JSON.stringify(found)}\n`, written));
process.exit(0);
