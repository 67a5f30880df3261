/** The token of the person who runs this process; undefined if `SVC_TOKEN` is unset or empty. */
export const ownToken = (): string | undefined => process.env.SVC_TOKEN || undefined;
