/** A database that is new, and its removal. */
export interface Fresh {
  readonly url: string;
  drop(): Promise<void>;
}
