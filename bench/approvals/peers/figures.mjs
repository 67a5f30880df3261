/** The figures of one contender; see `Figures` in ../peer.ts. */
export async function figures(system, { effects }, [rounds, waiting]) {
  const started = [];
  const woken = [];
  for (let round = 0; round < rounds; round++) {
    const run = `lone-${round}`;
    const startedAt = performance.now();
    await system.start(run);
    const decided = performance.now();
    started.push(decided - startedAt);
    await system.decide(run, { approve: true });
    woken.push(effects.startedAt.get(run) - decided);
  }
  const rateStartedAt = performance.now();
  await atOnce(rounds, 16, async (at) => {
    await system.start(`whole-${at}`);
    await system.decide(`whole-${at}`, { approve: true });
  });
  const rate = (rounds / (performance.now() - rateStartedAt)) * 1000;
  // The space freed by the rounds must not absorb the waiting runs.
  await effects.query('VACUUM FULL');
  const [memoryBefore, bytes] = [memory(), await effects.bytes()];
  const sample = Math.min(1_000, waiting);
  await atOnce(sample, 16, (at) => system.start(`waits-${at}`));
  const perRun = {
    bytes: ((await effects.bytes()) - bytes) / sample,
    memory: ((memory() - memoryBefore) / sample) * 1_000,
  };
  await atOnce(waiting - sample, 16, (at) => system.start(`waits-${sample + at}`));
  const listStartedAt = performance.now();
  const listed = await system.list?.();
  return {
    start: spread(started),
    wake: spread(woken),
    rate,
    ...perRun,
    list: { ms: performance.now() - listStartedAt, listed, waiting },
  };
}

async function atOnce(total, width, work) {
  let next = 0;
  const lane = async () => {
    while (next < total) await work(next++);
  };
  await Promise.all(Array.from({ length: width }, lane));
}

function memory() {
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function spread(values) {
  const sorted = values.slice(Math.min(10, values.length / 10)).sort((one, other) => one - other);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return { p50: at(0.5), p99: at(0.99) };
}
