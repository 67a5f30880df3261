/** The part of `@temporalio/workflow` that the step uses. @experimental */
export interface TemporalWorkflow {
  workflowInfo(): { readonly workflowId: string; readonly runId: string };
  proxyActivities(options: never): unknown;
  defineSignal(name: string): unknown;
  setHandler(signal: never, handler: () => void): void;
  condition(isMet: () => boolean, timeout: number): Promise<boolean>;
  isCancellation(error: unknown): boolean;
  readonly CancellationScope: { nonCancellable<T>(work: () => Promise<T>): Promise<T> };
}

/** The part of `@temporalio/activity` that the activities use. @experimental */
export interface TemporalActivity {
  heartbeat(): void;
  readonly ApplicationFailure: { nonRetryable(message: string, type: string): Error };
}
