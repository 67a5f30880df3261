import type { ConnectOptions, Dialect } from '../../../core/dialect.ts';
import type { Rules } from '../checked.ts';
import { type SqlEngine, sqlConnection } from '../engine.ts';
import { compileKept } from './compile.ts';
import { type KeptWords, seenKept } from './words.ts';

export interface KeptDialect extends Pick<Dialect, 'identify'> {
  readonly rules: Rules;
  readonly words: KeptWords;
  /** Throws `url_invalid`, `connection_failed`, `authentication_failed` or `driver_missing`. */
  open(url: string, options: ConnectOptions): Promise<SqlEngine>;
}

/**
 * The dialect of an engine that keeps the texts of its tables, rolls DDL back, and whose ALTER TABLE does little: what it
 * says itself is its words, what it refuses, and how to talk to it.
 */
export function keptDialect({ rules, words, identify, open }: KeptDialect): Dialect {
  return {
    name: rules.name,
    types: words.types,
    capabilities: { transactionalDdl: true, names: rules.names, refuses: rules.refuses },
    compile: (operation, before) => compileKept(words, rules, operation, before),
    seen: (model) => seenKept(words, model),
    identify,
    connect: async (url, options) => sqlConnection(words, await open(url, options)),
  };
}
