// npm run servers -- up | down | status [engine …]
import { down } from './down.ts';
import { ENGINES, isEngine, title } from './engine.ts';
import { find } from './find.ts';
import { handshake } from './handshake.ts';
import { isAlive } from './process.ts';
import { startedServers } from './state.ts';
import { type UpResult, up } from './up.ts';

const startedAt = performance.now();
const seconds = (): string => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
const progress = (line: string): void => void process.stderr.write(`${seconds().padStart(8)}  ${line}\n`);
const onWait = (): void => progress('waiting for another run');

const [verb = '', ...names] = process.argv.slice(2);
const unknown = names.filter((name) => !isEngine(name));
const engines = names.length === 0 ? ENGINES : names.filter(isEngine);

if (unknown.length > 0) usage(`Unknown engine: ${unknown.join(', ')}.`);
else if (verb === 'up') await bringUp();
else if (verb === 'down') await takeDown();
else if (verb === 'status') await printStatus();
else usage(verb === '' ? '' : `Unknown command: ${process.argv.slice(2).join(' ')}.`);

function usage(problem: string): void {
  process.stderr.write(
    `${problem}\nnpm run servers -- up | down | status [engine …]\nEngines: ${ENGINES.join(', ')}\n`,
  );
  process.exitCode = 2;
}

async function bringUp(): Promise<void> {
  const all = await up(engines, { report: (engine, text) => progress(`${title(engine)}: ${text}`), onWait });
  for (const one of all) console.log(line(one));
  const missing = all.filter((one) => 'missing' in one).length;
  console.log(`${all.length - missing} up, ${missing} missing, in ${seconds()}`);
  process.exitCode = missing > 0 ? 1 : 0;
}

async function takeDown(): Promise<void> {
  const { stopped, left } = await down(engines, onWait);
  for (const { engine, from } of stopped) console.log(`${title(engine)}: stopped (was started from ${from})`);
  for (const { engine, users } of left)
    console.log(
      `${title(engine)}: runs until its test runs end (process ${users.filter(isAlive).map(({ pid }) => pid)})`,
    );
  if (stopped.length + left.length === 0) console.log('no servers were started');
}

async function printStatus(): Promise<void> {
  for (const engine of engines) {
    const found = await find(engine).catch((error: Error) => ({ missing: error.message }));
    if ('missing' in found) {
      console.log(found.missing);
      process.exitCode = 1;
      continue;
    }
    const server = startedServers().find(({ url }) => url === found.url);
    const how = server
      ? `started from ${server.from}, process ${server.processes.map(({ pid }) => pid)}`
      : 'not started by npm run servers';
    console.log(line({ engine, url: found.url, version: await handshake(engine, found.url), how }));
  }
}

function line(one: UpResult): string {
  if ('missing' in one) return one.missing;
  return `${title(one.engine)} ${one.version}: ${one.url.replace(/\/\/[^/@]*@/, '//')} (${one.how})`;
}
