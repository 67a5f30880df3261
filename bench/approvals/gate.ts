import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import pg from 'pg';
import { Svc } from '../../config/sdk/index.ts';
import type { AgentRuntime } from '../../core/agent/agent-runtime.ts';
import type { Run, RunEvent } from '../../core/agent/run.ts';
import { decide } from '../../core/approval/decide.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import { AgentHost, agentOf } from '../../test/kit/agent-host.ts';
import { dropDatabases, freshDatabase } from '../database.ts';
import { postgresql } from '../engine.ts';
import { machineFacts } from '../machine.ts';
import { keep } from '../report.ts';
import { table } from '../table.ts';
import { Bare } from './bare.ts';
import {
  connect,
  gateOn,
  nextCall,
  PARAMETERS,
  perSecond,
  refundTool,
  type Spread,
  serviceOn,
  spread,
  stored,
  toolsWith,
} from './stage.ts';

/*
 * What approvals cost, with the least that PostgreSQL allows (bare `pg`) beside: `npm run bench -- gate [name…]`. Times
 * of a machine that does something else meanwhile say little; only all of it writes results/gate.md.
 */

type Row = readonly [what: string, measured: string, aim: string, isReached?: boolean];
const wanted = process.argv.slice(2);
const rows: Row[] = [];
const ms = ({ p50, p95, p99 }: Spread): string =>
  `p50 ${p50.toFixed(2)}, p95 ${p95.toFixed(2)}, p99 ${p99.toFixed(2)} ms`;

const lineOf = ([what, measured, aim, isReached]: Row): readonly string[] => [
  what,
  measured,
  aim,
  isReached === undefined ? '' : isReached ? 'reached' : 'MISSED',
];

async function measure(name: string, work: (url: string) => Promise<readonly Row[]>): Promise<void> {
  if (wanted.length > 0 && !wanted.includes(name)) return;
  const found = await work(await freshDatabase(postgresql, `svc_bench_approvals_${process.pid}`));
  for (const row of found) console.error(lineOf(row).join(' | '));
  rows.push(...found);
}

const refundAgent = (approvalTimeout = 300_000) =>
  agentOf([{ calls: [{ tool: 'refund', parameters: PARAMETERS }] }, { text: 'Done.' }], {
    tag: `payouts-${approvalTimeout}`,
    tools: [
      {
        tag: 'refund',
        description: 'Pays money back to a customer. Cannot be undone.',
        requiresConfirmation: true,
        parameters: { orderId: { type: 'string' }, amount: { type: 'number' }, note: { type: 'string' } },
        handler: () => 'paid',
      },
    ],
    humanInLoop: { enabled: true, approvalTimeout },
  });

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes that are in use, whatever the process has kept of what it once used. */
function held(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** The first that a run of it waits for. */
async function requestOf(run: AsyncIterable<RunEvent>): Promise<ApprovalRequest> {
  for await (const event of run) if (event.type === 'approval_requested') return event.request;
  throw new Error('a run ended without asking anybody');
}

const yes = (service: Awaited<ReturnType<typeof serviceOn>>, { requestId, executionId }: ApprovalRequest) =>
  decide(service, { executionId, signal: 'approve', payload: { requestId } }, { actor: 'bench' });

try {
  await measure('free', async () => {
    const tools = toolsWith(() => 1, false);
    const tool = tools.get('refund');
    const svc = new Svc({ config: { product: 'bench', env: 'dev' } });
    const gate = svc.gate({ agentTag: 'payouts', tools: [refundTool(() => 1, false)] });
    const rounds = 200_000;
    const bare = async (parameters: unknown) => {
      const checked = tool?.validate(parameters);
      return checked?.ok ? tool?.handler({} as never, checked.parameters) : undefined;
    };
    const call = nextCall();
    const time = async (work: () => Promise<unknown>): Promise<number> => {
      const began = performance.now();
      for (let round = 0; round < rounds; round++) await work();
      return ((performance.now() - began) / rounds) * 1000;
    };
    const times = { gate: [] as number[], bare: [] as number[] };
    for (let turn = 0; turn < 7; turn++) {
      times.bare.push(await time(() => bare(PARAMETERS)));
      times.gate.push(await time(() => gate.run(call)));
    }
    await svc.close();
    const [with_, without] = [spread(times.gate).p50, spread(times.bare).p50];
    return [
      [
        'a tool without approval, over its handler',
        `${(with_ - without).toFixed(2)} µs (${with_.toFixed(2)} − ${without.toFixed(2)})`,
        '1 µs',
        with_ - without <= 1,
      ],
    ];
  });

  await measure('stored', async (url) => {
    const service = await serviceOn(await connect(url));
    const gate = gateOn(
      service,
      toolsWith(() => 'paid'),
    );
    const bare = await Bare.open(url, 1);
    const times = { run: [] as number[], named: [] as number[], bare: [] as number[] };
    for (let round = 0; round < 1_000; round++) {
      let began = performance.now();
      const first = await stored(gate, nextCall());
      times.run.push(performance.now() - began);
      began = performance.now();
      const second = await stored(gate, nextCall({ toolCallId: 'call_1' }));
      times.named.push(performance.now() - began);
      began = performance.now();
      await bare.create();
      times.bare.push(performance.now() - began);
      for (const { request, outcome } of [first, second]) {
        await yes(service, request);
        await outcome;
      }
    }
    await service.close();
    await bare.close();
    const [run, named] = [spread(times.run.slice(50)), spread(times.named.slice(50))];
    return [
      ['start to stored and waiting', ms(run), 'p50 1 ms', run.p50 <= 1],
      ['the same, the caller names the call', ms(named), 'p50 1 ms', named.p50 <= 1],
      ['bare pg: one insert', ms(spread(times.bare.slice(50))), ''],
    ];
  });

  await measure('rate', async (url) => {
    const service = await serviceOn(await connect(url));
    const other = await serviceOn(await connect(url));
    const width = 64;
    const leave = new AbortController();
    const { DETACH } = await import('../../core/approval/call.ts');
    const gate = gateOn(
      service,
      toolsWith(() => 'paid'),
    );
    const whole = async () => {
      const { request, outcome } = await stored(gate, nextCall());
      await yes(other, request);
      await outcome;
    };
    await perSecond(500, width, whole);
    const finished = await perSecond(6_000, width, whole);
    const created = await perSecond(6_000, width, async () => {
      const request = await new Promise<ApprovalRequest>((resolve) => {
        gate.call(nextCall(), { signal: leave.signal, onRequested: resolve }).catch(() => undefined);
      });
      leave.signal.throwIfAborted();
      await yes(other, request);
    });
    leave.abort(DETACH);
    await service.close();
    await other.close();
    const bare = await Bare.open(url, 16);
    const bareRate = await perSecond(6_000, 16, async (lane) => {
      const id = await bare.create(lane);
      await bare.decide(id, lane);
      await bare.finish(id, lane);
    });
    await bare.close();
    return [
      ['create, decide and run (the run of the last goes on), a second', created.toFixed(0), '2,000', created >= 2_000],
      ['create, decide, finish, a second', finished.toFixed(0), '1,200', finished >= 1_200],
      ['bare pg, 16 connections: insert and two updates, a second', bareRate.toFixed(0), ''],
    ];
  });

  await measure('runs', async (url) => {
    const host = await AgentHost.open(await connect(url));
    const other = await AgentHost.open(await connect(url));
    const payouts = host.define(refundAgent());
    const whole = async () => {
      const run = host.run(payouts);
      await other.decide(await requestOf(run));
      const { status } = await run.result;
      if (status !== 'completed') throw new Error(`a run is ${status}`);
    };
    await perSecond(300, 64, whole);
    const rate = await perSecond(3_000, 64, whole);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const size = async () => {
      const tables = "pg_total_relation_size('_svc_approvals') + pg_total_relation_size('_svc_executions')";
      return Number((await client.query(`SELECT ${tables} AS size`)).rows[0].size);
    };
    await client.query('VACUUM FULL');
    const [count, before] = [5_000, await size()];
    await perSecond(count, 64, () => requestOf(host.run(payouts)));
    const bytes = ((await size()) - before) / count;
    await client.end();
    await host.close();
    await other.close();
    return [
      ['runs of an agent begun, decided and finished, a second', rate.toFixed(0), '1,200', rate >= 1_200],
      [
        `bytes of a waiting run of an agent, of ${count.toLocaleString('en')}, indexes and all`,
        bytes.toFixed(0),
        '2,400',
        bytes <= 2_400,
      ],
    ];
  });

  await measure('wake', async (url) => {
    const service = await serviceOn(await connect(url));
    const waiter = fork(fileURLToPath(new URL('./waiter.ts', import.meta.url)), [url], {
      execArgv: ['--import', 'tsx'],
    });
    await once(waiter, 'message');
    const times: number[] = [];
    for (let round = 0; round < 600; round++) {
      waiter.send('go');
      const [{ request }] = (await once(waiter, 'message')) as [{ request: ApprovalRequest }];
      const ended = once(waiter, 'message');
      const began = performance.timeOrigin + performance.now();
      await yes(service, request);
      const [{ began: handler }] = (await ended) as [{ began: number }];
      times.push(handler - began);
    }
    waiter.disconnect();
    await service.close();
    const wake = spread(times.slice(50));
    const isReached = wake.p50 <= 2.5 && wake.p99 <= 8;
    return [['decision to handler, in another process', ms(wake), 'p50 2.5, p99 8 ms', isReached]];
  });

  await measure('size', async (url) => {
    const backend = await connect(url);
    const service = await serviceOn(backend);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const size = async () =>
      Number((await client.query(`SELECT pg_total_relation_size('_svc_approvals') AS size`)).rows[0].size);
    const gate = gateOn(
      service,
      toolsWith(() => 'paid'),
    );
    await client.query('VACUUM FULL _svc_approvals');
    const [count, before] = [5_000, await size()];
    await perSecond(count, 64, () => stored(gate, nextCall()));
    const after = await size();
    await client.end();
    await service.close();
    await backend.close();
    return [['bytes of a waiting request, indexes and all', String(Math.round((after - before) / count)), '']];
  });

  await measure('crowd', async (url) => {
    const host = await AgentHost.open(await connect(url));
    const late: number[] = [];
    // The server's clock is that of this machine.
    host.kernel.hooks.approvalDecided.tap('bench', ({ timeout }) => void late.push(Date.now() - Date.parse(timeout)));
    const agents = Array.from({ length: 120 }, (_, at) => host.define(refundAgent(20_000 + at * 500)));
    const runs: Run[] = [];
    let begun = 0;
    const before = held();
    const began = performance.now();
    await perSecond(10_000, 64, async () => {
      const run = host.run(agents[begun++ % agents.length] as AgentRuntime);
      runs.push(run);
      await requestOf(run);
    });
    const made = performance.now() - began;
    const more = (held() - before) / 2 ** 20;
    await Promise.all(runs.map(({ result }) => result));
    await host.close();
    return [
      [
        'what 10,000 runs of an agent hold while they wait in one process',
        `${more.toFixed(0)} MB (made in ${(made / 1000).toFixed(1)} s)`,
        '200 MB',
        more <= 200,
      ],
      [
        'each decided after its own deadline, spread over 60 s',
        `${ms(spread(late))}, last ${Math.max(...late)} ms`,
        '100 ms',
        Math.max(...late) <= 100,
      ],
    ];
  });

  const text = [
    '# Measured with `npm run bench -- gate`',
    (await machineFacts([postgresql])).map((fact) => `- ${fact}`).join('\n'),
    table(['', 'measured', 'aim', ''], rows.map(lineOf)),
  ].join('\n\n');
  console.log(text);
  if (wanted.length === 0) await keep('gate.md', text);
} finally {
  await dropDatabases();
}
