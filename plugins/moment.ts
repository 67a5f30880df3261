/** A moment on two clocks of this process: one stands still while the machine sleeps, the other one can be set. */
export interface Moment {
  readonly steady: number;
  readonly wall: number;
}

export const moment = (): Moment => ({ steady: performance.now(), wall: Date.now() });

/** Milliseconds since then, by the clock that says more: what lasts for a while is over by the first of them. */
export const since = ({ steady, wall }: Moment): number => Math.max(performance.now() - steady, Date.now() - wall);
