/** Milliseconds, runs a second, bytes and so on of one contender. */
export async function figures(system, { effects }, [rounds, waiting]) {
  const started = [];
  const woken = [];
  for (let round = 0; round < rounds; round++) {
    const run = `lone-${round}`;
    const began = performance.now();
    await system.start(run);
    const decided = performance.now();
    started.push(decided - began);
    await system.decide(run, { approve: true });
    woken.push(effects.began.get(run) - decided);
  }
  const rateBegan = performance.now();
  await atOnce(rounds, 16, async (at) => {
    await system.start(`whole-${at}`);
    await system.decide(`whole-${at}`, { approve: true });
  });
  const rate = (rounds / (performance.now() - rateBegan)) * 1000;
  // What the rounds have left behind is no room for those that wait.
  await effects.query('VACUUM FULL');
  const [held, bytes] = [memory(), await effects.bytes()];
  const few = Math.min(1_000, waiting);
  await atOnce(few, 16, (at) => system.start(`waits-${at}`));
  const each = {
    bytes: ((await effects.bytes()) - bytes) / few,
    memory: ((memory() - held) / few) * 1_000,
  };
  await atOnce(waiting - few, 16, (at) => system.start(`waits-${few + at}`));
  const listBegan = performance.now();
  const listed = await system.list();
  return {
    start: spread(started),
    wake: spread(woken),
    rate,
    ...each,
    list: { ms: performance.now() - listBegan, listed, waiting },
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
