/** @experimental */
export interface CallbackOptions {
  /** The address that the connection of a request comes from: `approvals.proxy` with `peers` needs it. */
  peerOf?(request: Request): string | undefined;
  /** Ends open event streams of the API when your server stops; without it, they end when the client is closed. */
  readonly stopping?: AbortSignal | undefined;
}
