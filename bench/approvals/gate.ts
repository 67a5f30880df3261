import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import pg from 'pg';
import { compileRules } from '../../config/load/approval-rules.ts';
import { Svc } from '../../config/sdk/index.ts';
import type { AgentRuntime } from '../../core/agent/agent-runtime.ts';
import type { Run, RunEvent } from '../../core/agent/run.ts';
import { decide } from '../../core/approval/decide.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import { AgentHost, agentDefinition } from '../../test/kit/agent-host.ts';
import { dropDatabases, freshDatabase } from '../database.ts';
import { postgresql } from '../engine.ts';
import { machineFacts } from '../machine.ts';
import { saveResult } from '../report.ts';
import { table } from '../table.ts';
import { Bare } from './bare.ts';
import { timeSeals } from './seals.ts';
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
  storeRequest,
  toolsWith,
} from './stage.ts';

/*
 * The cost of approvals, compared with bare `pg`: `npm run bench -- gate [--quick] [name…]`. Run it on an idle machine. Only a
 * complete run writes results/gate.md.
 */

type Row = readonly [name: string, measured: string, target: string, isReached?: boolean];
const isQuick = process.argv.includes('--quick');
const selected = process.argv.slice(2).filter((name) => !name.startsWith('-'));
/** How often something is measured; a tenth in a trial. */
const scaled = (count: number): number => (isQuick ? count / 10 : count);
const rows: Row[] = [];
const ms = ({ p50, p95, p99 }: Spread): string =>
  `p50 ${p50.toFixed(2)}, p95 ${p95.toFixed(2)}, p99 ${p99.toFixed(2)} ms`;

const lineOf = ([name, measured, target, isReached]: Row): readonly string[] => [
  name,
  measured,
  target,
  isReached === undefined ? '' : isReached ? 'reached' : 'MISSED',
];

async function measure(name: string, work: (url: string) => Promise<readonly Row[]>): Promise<void> {
  if (selected.length > 0 && !selected.includes(name)) return;
  const results = await work(await freshDatabase(postgresql, `svc_bench_approvals_${process.pid}`));
  for (const row of results) console.error(lineOf(row).join(' | '));
  rows.push(...results);
}

const refundAgent = (approvalTimeout = 300_000) =>
  agentDefinition([{ calls: [{ tool: 'refund', parameters: PARAMETERS }] }, { text: 'Done.' }], {
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

/** Bytes in use after garbage collection; unlike the resident size, without freed memory. */
function usedMemory(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** The first request that the run waits for. */
async function requestOf(run: AsyncIterable<RunEvent>): Promise<ApprovalRequest> {
  for await (const event of run) if (event.type === 'approval_requested') return event.request;
  throw new Error('the run ended without a request');
}

const approve = (service: Awaited<ReturnType<typeof serviceOn>>, { requestId, executionId }: ApprovalRequest) =>
  decide(service, { executionId, signal: 'approve', payload: { requestId } }, { actor: 'bench' });

try {
  await measure('free', async () => {
    const tools = toolsWith(() => 1, false);
    const tool = tools.get('refund');
    const svc = new Svc({ config: { product: 'bench', env: 'dev' } });
    const gate = svc.gate({ agentTag: 'payouts', tools: [refundTool(() => 1, false)] });
    const rounds = scaled(200_000);
    const bare = async (parameters: unknown) => {
      const validated = await tool?.validate(parameters);
      return validated?.ok ? tool?.handler({} as never, validated.input) : undefined;
    };
    const call = nextCall();
    const time = async (work: () => Promise<unknown>): Promise<number> => {
      const startedAt = performance.now();
      for (let round = 0; round < rounds; round++) await work();
      return ((performance.now() - startedAt) / rounds) * 1000;
    };
    const times = { gate: [] as number[], bare: [] as number[] };
    for (let turn = 0; turn < 7; turn++) {
      times.bare.push(await time(() => bare(PARAMETERS)));
      times.gate.push(await time(() => gate.run(call)));
    }
    await svc.close();
    const [gated, plain] = [spread(times.gate).p50, spread(times.bare).p50];
    return [
      [
        'a tool without approval, compared with its handler alone',
        `${(gated - plain).toFixed(2)} µs (${gated.toFixed(2)} − ${plain.toFixed(2)})`,
        '1 µs',
        gated - plain <= 1,
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
    for (let round = 0; round < scaled(1_000); round++) {
      let startedAt = performance.now();
      const first = await storeRequest(gate, nextCall());
      times.run.push(performance.now() - startedAt);
      startedAt = performance.now();
      const second = await storeRequest(gate, nextCall({ toolCallId: 'call_1' }));
      times.named.push(performance.now() - startedAt);
      startedAt = performance.now();
      await bare.create();
      times.bare.push(performance.now() - startedAt);
      for (const { request, outcome } of [first, second]) {
        await approve(service, request);
        await outcome;
      }
    }
    await service.close();
    await bare.close();
    const [run, named] = [spread(times.run.slice(50)), spread(times.named.slice(50))];
    return [
      ['start to stored and waiting', ms(run), 'p50 1 ms', run.p50 <= 1],
      ['the same, with a toolCallId of the caller', ms(named), 'p50 1 ms', named.p50 <= 1],
      ['bare pg: one insert', ms(spread(times.bare.slice(50))), ''],
    ];
  });

  await measure('votes', async (url) => {
    const { rules } = compileRules({
      roles: { finance: ['group:finance'] },
      rules: [{ approve: [{ role: 'finance', count: 2 }] }],
    });
    const [plain, ruled] = [await serviceOn(await connect(url)), await serviceOn(await connect(url), rules)];
    const bare = await Bare.open(url, 1);
    const times = { bare: [] as number[], decision: [] as number[], first: [] as number[], last: [] as number[] };
    const timed = async (list: number[], work: () => Promise<unknown>) => {
      const startedAt = performance.now();
      await work();
      list.push(performance.now() - startedAt);
    };
    const tools = toolsWith(() => 'paid');
    const gates = { plain: gateOn(plain, tools), ruled: gateOn(ruled, tools) };
    const vote = ({ requestId, executionId }: ApprovalRequest, id: string) =>
      decide(
        ruled,
        { executionId, signal: 'approve', payload: { requestId } },
        { principal: { id, groups: ['finance'] } },
      );
    for (let round = 0; round < scaled(1_000); round++) {
      const id = await bare.create();
      await timed(times.bare, () => bare.decide(id));
      const one = await storeRequest(gates.plain, nextCall());
      await timed(times.decision, () => approve(plain, one.request));
      await one.outcome;
      const other = await storeRequest(gates.ruled, nextCall());
      await timed(times.first, () => vote(other.request, 'ann'));
      await timed(times.last, () => vote(other.request, 'bo'));
      await other.outcome;
    }
    for (const service of [plain, ruled]) await service.close();
    await bare.close();
    const bareDecision = spread(times.bare.slice(50));
    const row = (name: string, list: readonly number[]): Row => {
      const measured = spread(list.slice(50));
      return [name, ms(measured), 'p50 2 ms over bare', measured.p50 <= bareDecision.p50 + 2];
    };
    return [
      ['bare pg: one update', ms(bareDecision), ''],
      row('a decision without a rule', times.decision),
      row('the first of two votes', times.first),
      row('the second of two votes, which decides', times.last),
    ];
  });

  await measure('rate', async (url) => {
    const service = await serviceOn(await connect(url));
    const other = await serviceOn(await connect(url));
    const width = 64;
    const detach = new AbortController();
    const { DETACH } = await import('../../core/approval/call.ts');
    const gate = gateOn(
      service,
      toolsWith(() => 'paid'),
    );
    const runOnce = async () => {
      const { request, outcome } = await storeRequest(gate, nextCall());
      await approve(other, request);
      await outcome;
    };
    await perSecond(scaled(500), width, runOnce);
    const finished = await perSecond(scaled(6_000), width, runOnce);
    const created = await perSecond(scaled(6_000), width, async () => {
      const request = await new Promise<ApprovalRequest>((resolve) => {
        gate.call(nextCall(), { signal: detach.signal, onRequested: resolve }).catch(() => undefined);
      });
      detach.signal.throwIfAborted();
      await approve(other, request);
    });
    detach.abort(DETACH);
    await service.close();
    await other.close();
    const bare = await Bare.open(url, 16);
    const bareRate = await perSecond(scaled(6_000), 16, async (lane) => {
      const id = await bare.create(lane);
      await bare.decide(id, lane);
      await bare.finish(id, lane);
    });
    await bare.close();
    return [
      [
        'create and decide (the last runs may still be unfinished), per second',
        created.toFixed(0),
        '2,000',
        created >= 2_000,
      ],
      ['create, decide, finish, per second', finished.toFixed(0), '1,200', finished >= 1_200],
      ['bare pg, 16 connections: insert and two updates, per second', bareRate.toFixed(0), ''],
      [
        'create, decide, finish, compared with bare pg',
        (finished / bareRate).toFixed(2),
        '0.6',
        finished / bareRate >= 0.6,
      ],
    ];
  });

  await measure('runs', async (url) => {
    const host = await AgentHost.open(await connect(url));
    const other = await AgentHost.open(await connect(url));
    const payouts = host.define(refundAgent());
    const runOnce = async () => {
      const run = host.run(payouts);
      await other.decide(await requestOf(run));
      const { status } = await run.result;
      if (status !== 'completed') throw new Error(`a run is ${status}`);
    };
    await perSecond(scaled(300), 64, runOnce);
    const rate = await perSecond(scaled(3_000), 64, runOnce);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const size = async () => {
      const tables = "pg_total_relation_size('_svc_approvals') + pg_total_relation_size('_svc_executions')";
      return Number((await client.query(`SELECT ${tables} AS size`)).rows[0].size);
    };
    await client.query('VACUUM FULL');
    const [count, before] = [scaled(5_000), await size()];
    await perSecond(count, 64, () => requestOf(host.run(payouts)));
    const bytes = ((await size()) - before) / count;
    await client.end();
    await host.close();
    await other.close();
    return [
      ['agent runs started, decided and finished, per second', rate.toFixed(0), '1,500', rate >= 1_500],
      [
        `bytes per waiting agent run (${count.toLocaleString('en')} runs), including indexes`,
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
    for (let round = 0; round < scaled(600) + 50; round++) {
      waiter.send('go');
      const [{ request }] = (await once(waiter, 'message')) as [{ request: ApprovalRequest }];
      const ended = once(waiter, 'message');
      const startedAt = performance.timeOrigin + performance.now();
      await approve(service, request);
      const [{ startedAt: handler }] = (await ended) as [{ startedAt: number }];
      times.push(handler - startedAt);
    }
    waiter.disconnect();
    await service.close();
    const wake = spread(times.slice(50));
    const isReached = wake.p50 <= 2.5 && wake.p99 <= 5;
    return [['decision to handler in another process', ms(wake), 'p50 2.5, p99 5 ms', isReached]];
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
    const [count, before] = [scaled(5_000), await size()];
    await perSecond(count, 64, () => storeRequest(gate, nextCall()));
    const after = await size();
    await client.end();
    await service.close();
    await backend.close();
    return [['bytes per waiting request, including indexes', String(Math.round((after - before) / count)), '']];
  });

  await measure('seals', async (url) => {
    const { events, first, next, read } = await timeSeals(url, Math.ceil(scaled(100_000) / 3));
    const count = events.toLocaleString('en');
    return [
      [`${count} events of the audit sealed, to a file too`, `${first.toFixed(2)} s`, '5 s', first <= 5],
      [`after ${count} events, one new request sealed`, `${(next * 1000).toFixed(0)} ms`, ''],
      [`their seals read from the file and verified`, `${read.toFixed(2)} s`, ''],
    ];
  });

  await measure('crowd', async (url) => {
    const host = await AgentHost.open(await connect(url));
    const delays: number[] = [];
    // The server runs on this machine, so both use one clock.
    host.kernel.hooks.approvalDecided.tap('bench', ({ timeout }) => void delays.push(Date.now() - Date.parse(timeout)));
    const agents = Array.from({ length: 120 }, (_, index) => host.define(refundAgent(20_000 + index * 500)));
    const runs: Run[] = [];
    let started = 0;
    const before = usedMemory();
    const startedAt = performance.now();
    await perSecond(scaled(10_000), 64, async () => {
      const run = host.run(agents[started++ % agents.length] as AgentRuntime);
      runs.push(run);
      await requestOf(run);
    });
    const elapsed = performance.now() - startedAt;
    const megabytes = (usedMemory() - before) / 2 ** 20;
    await Promise.all(runs.map(({ result }) => result));
    await host.close();
    return [
      [
        'memory of 10,000 waiting agent runs in one process',
        `${megabytes.toFixed(0)} MB (started in ${(elapsed / 1000).toFixed(1)} s)`,
        '200 MB',
        megabytes <= 200,
      ],
      [
        'expiry after the deadline, deadlines spread over 60 s',
        `${ms(spread(delays))}, last ${Math.max(...delays)} ms`,
        '100 ms',
        Math.max(...delays) <= 100,
      ],
    ];
  });

  const text = [
    '# Measured with `npm run bench -- gate`',
    (await machineFacts([postgresql])).map((fact) => `- ${fact}`).join('\n'),
    table(['', 'measured', 'aim', ''], rows.map(lineOf)),
  ].join('\n\n');
  console.log(text);
  if (selected.length === 0 && !isQuick) await saveResult('gate.md', text);
} finally {
  await dropDatabases();
}
