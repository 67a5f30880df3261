import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { startTemporal, temporalUnavailable } from '../../test/durable/temporal-server.ts';
import { dropDatabases, freshDatabase } from '../database.ts';
import { postgresql } from '../engine.ts';
import { installPeers } from '../install.ts';
import { machineFacts, peerFacts } from '../machine.ts';
import { saveResult } from '../report.ts';
import { Bare } from './bare.ts';
import { type Fault, type Figures, runHost, runVictim } from './peer.ts';
import { adapterTable, faultTables, figuresTable } from './tables.ts';

/*
 * One gated call end to end, with svc and its peers: `npm run bench -- approvals [--only=svc,dbos] [--rounds=200]
 * [--waiting=5000] [--quick]`. Every contender has its own processes and databases. Only a complete run writes
 * results/approvals.md.
 */

/** Each contender is the file of that name in `peers/`, and the same with an adapter of svc one with the ending `-svc`. */
const BARE = [
  'svc',
  'langgraph',
  'langchain',
  'openai',
  'aisdk',
  'mastra',
  'genkit',
  'claude-agent',
  'dbos',
  'temporal',
] as const;
const FOLDER = new URL('./peers/', import.meta.url);
const PEERS = BARE.flatMap((name) => [name, `${name}-svc`]).filter((name) =>
  existsSync(new URL(`${name}.mjs`, FOLDER)),
);

export interface Contender {
  readonly name: string;
  readonly faults: Readonly<Record<string, Fault>>;
  readonly figures: Figures;
}

export async function compare(args: readonly string[]): Promise<void> {
  const { values: flags } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string' },
      rounds: { type: 'string' },
      waiting: { type: 'string' },
      quick: { type: 'boolean' },
    },
  });
  const rounds = Number(flags.rounds ?? (flags.quick ? 30 : 200));
  const waiting = Number(flags.waiting ?? (flags.quick ? 100 : 5_000));
  const selected = flags.only?.split(',');
  await installPeers(FOLDER);
  const names = PEERS.filter((name) => !selected || selected.includes(name));
  const temporal = names.some(isOfTemporal) ? await temporalOrReason() : undefined;
  const results: Contender[] = [];
  const floorMs = await medianOfThreeWrites(rounds);
  try {
    for (const name of names) {
      if (isOfTemporal(name) && typeof temporal === 'string') continue;
      const database = name.replaceAll('-', '_');
      console.error(`${name}: faults`);
      const faultsUrl = await freshDatabase(postgresql, `svc_bench_faults_${process.pid}_${database}`);
      for (const moment of ['before', 'after'] as const) await runVictim(name, faultsUrl, moment);
      const faults = await runHost<Record<string, Fault>>(name, [faultsUrl, 'faults']);
      console.error(`${name}: ${rounds} rounds, ${waiting} waiting`);
      const figuresUrl = await freshDatabase(postgresql, `svc_bench_figures_${process.pid}_${database}`);
      const figures = await runHost<Figures>(name, [figuresUrl, 'figures', String(rounds), String(waiting)]);
      results.push({ name, faults, figures });
      await dropDatabases();
    }
  } finally {
    if (typeof temporal === 'object') temporal.stop();
    await dropDatabases();
  }
  const text = [
    '# Measured with `npm run bench -- approvals`',
    'One gated call end to end: a scripted model calls a tool, the run is stored and waits, a decision arrives, the tool writes a row, the model finishes. Each contender is used as its documentation shows, on PostgreSQL, in its own processes and databases.',
    [...(await machineFacts([postgresql])), peerFacts(FOLDER)].map((fact) => `- ${fact}`).join('\n'),
    `## Figures (${rounds} rounds, ${waiting} waiting)`,
    figuresTable(results),
    ...(typeof temporal === 'string' ? [`Temporal is missing: ${temporal}`] : []),
    'Tools that use no memory while a run waits leave waking it to the caller. The bench stores the messages of AI SDK and the state of OpenAI Agents in a table of its own, and so the messages of Genkit and the session files of the Claude Agent SDK, which starts a process for every part of a run and is measured with fewer runs. The server of Temporal is its own test server, in memory: its runs have no bytes in PostgreSQL, and it cannot list.',
    '## What an adapter adds',
    'A gated call of the framework, and the same with the adapter of svc in place of its own approval: the medians of start and wake together.',
    adapterTable(results),
    `What is added keeps the decision and runs the call at most once, which takes at least three durable writes before the tool runs: the request, the decision and the claim of the call. With bare \`pg\` and nothing else they took ${floorMs.toFixed(1)} ms here.`,
    '## Faults',
    'A process is killed in its handler; the response of a new process comes first, and if the run only waits again, it is approved once more. `ran` counts the rows that the tool wrote. The tool of svc is not declared idempotent: an idempotent one would run again, with the same key.',
    ...faultTables(results),
  ].join('\n\n');
  console.log(`${text}\n`);
  if (!selected && !flags.quick) await saveResult('approvals.md', text);
}

/** Milliseconds of the writes that a decided call cannot do without, with `pg` alone. */
async function medianOfThreeWrites(rounds: number): Promise<number> {
  const bare = await Bare.open(await freshDatabase(postgresql, `svc_bench_floor_${process.pid}`), 1);
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now();
    const id = await bare.create();
    await bare.decide(id);
    await bare.finish(id);
    times.push(performance.now() - startedAt);
  }
  await bare.close();
  await dropDatabases();
  return times.sort((one, other) => one - other)[Math.floor(rounds / 2)] ?? Number.NaN;
}

const isOfTemporal = (name: string) => name.startsWith('temporal');

/** Starts the server of Temporal for the contenders, or says why it cannot. */
async function temporalOrReason() {
  const reason = temporalUnavailable();
  if (reason !== undefined) return reason;
  const server = await startTemporal();
  process.env.TEMPORAL_ADDRESS = server.address;
  return server;
}
