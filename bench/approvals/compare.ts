import { parseArgs } from 'node:util';
import { dropDatabases, freshDatabase } from '../database.ts';
import { postgresql } from '../engine.ts';
import { installPeers } from '../install.ts';
import { machineFacts, peerFacts } from '../machine.ts';
import { keep } from '../report.ts';
import { type Fault, type Figures, runHost, runVictim } from './peer.ts';
import { faultTables, figuresTable } from './tables.ts';

/*
 * One gated call end to end, ours and theirs: `npm run bench -- approvals [--only=svc,dbos] [--rounds=200]
 * [--waiting=10000] [--quick]`. Every contender has processes and databases of its own; results/approvals.md is written
 * by a whole run only.
 */

/** What each is told in the file of that name under `peers/`. */
const PEERS = ['svc', 'langgraph', 'langchain', 'openai', 'aisdk', 'mastra', 'dbos'] as const;
const FOLDER = new URL('./peers/', import.meta.url);

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
  const waiting = Number(flags.waiting ?? (flags.quick ? 100 : 10_000));
  const wanted = flags.only?.split(',');
  await installPeers(FOLDER);
  const found: Contender[] = [];
  try {
    for (const name of PEERS) {
      if (wanted && !wanted.includes(name)) continue;
      console.error(`${name}: faults`);
      const faulty = await freshDatabase(postgresql, `svc_bench_faults_${process.pid}_${name}`);
      for (const moment of ['before', 'after'] as const) await runVictim(name, faulty, moment);
      const faults = await runHost<Record<string, Fault>>(name, [faulty, 'faults']);
      console.error(`${name}: ${rounds} rounds, ${waiting} waiting`);
      const quick = await freshDatabase(postgresql, `svc_bench_figures_${process.pid}_${name}`);
      const figures = await runHost<Figures>(name, [quick, 'figures', String(rounds), String(waiting)]);
      found.push({ name, faults, figures });
      await dropDatabases();
    }
  } finally {
    await dropDatabases();
  }
  const text = [
    '# Measured with `npm run bench -- approvals`',
    'One gated call end to end: a scripted model calls a tool, the run is stored and waits, a decision comes, the tool writes a row, the model ends. Each contender as its documentation shows it, on PostgreSQL, in processes and databases of its own.',
    [...(await machineFacts([postgresql])), peerFacts(FOLDER)].map((fact) => `- ${fact}`).join('\n'),
    `## Figures (${rounds} rounds, ${waiting} waiting)`,
    figuresTable(found),
    'Those that hold nothing in memory while a run waits leave it to their user to wake it. The messages of AI SDK and the state of OpenAI Agents are kept in a row of a table of the bench.',
    '## Faults',
    'A victim is killed in its handler; what a new process makes of it comes first, and where it only waits again the human says yes once more. `ran` counts the rows that the tool wrote. The tool of svc does not say that it is idempotent: one that does is run again, with the same key.',
    ...faultTables(found),
  ].join('\n\n');
  console.log(`${text}\n`);
  if (!wanted && !flags.quick) await keep('approvals.md', text);
}
