export interface Runner {
  readonly name: string;
  /** Milliseconds of one run. */
  readonly lap: () => Promise<number>;
}

/** Times by runner, one per round. A runner that fails takes no further part; `failures` has the reason. */
export interface Race {
  readonly times: ReadonlyMap<string, readonly number[]>;
  readonly failures: ReadonlyMap<string, string>;
}

/** Runs the runners in turn, in a different order each round, until the rounds or the time are up; reports each round. */
export async function race(
  title: string,
  runners: readonly Runner[],
  rounds: number,
  until = Number.POSITIVE_INFINITY,
): Promise<Race> {
  const times = new Map(runners.map(({ name }) => [name, [] as number[]]));
  const failures = new Map<string, string>();
  const startedAt = performance.now();
  for (let round = 0; round < rounds && (round === 0 || performance.now() < until); round++) {
    const first = round % runners.length;
    for (const { name, lap } of [...runners.slice(first), ...runners.slice(0, first)]) {
      if (failures.has(name)) continue;
      try {
        times.get(name)?.push(await lap());
      } catch (error) {
        failures.set(name, error instanceof Error ? error.message : String(error));
        times.delete(name);
      }
    }
    console.error(
      `${title}: round ${round + 1} of ${rounds}, ${((performance.now() - startedAt) / 1000).toFixed(1)} s`,
    );
  }
  return { times, failures };
}

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (index: number): number => sorted[index] ?? Number.NaN;
  const half = (sorted.length - 1) / 2;
  return { median: (at(Math.floor(half)) + at(Math.ceil(half))) / 2, min: at(0), max: at(sorted.length - 1) };
}

/** Ratios round by round, so that a slowdown of a whole round cancels out. */
export function ratios(race: Race, name: string, unit: string): Spread | undefined {
  const times = race.times.get(name);
  const base = race.times.get(unit);
  if (!times?.length || !base?.length) return undefined;
  return spread(times.flatMap((time, round) => (base[round] === undefined ? [] : [time / base[round]])));
}
