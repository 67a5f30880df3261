import type { Document } from 'bson';

/** MongoDB error code and name of each SQLSTATE that the engine is known to raise. */
const CODES: Readonly<Record<string, readonly [number, string]>> = {
  M0001: [2, 'BadValue'],
  M0003: [9, 'FailedToParse'],
  M0004: [14, 'TypeMismatch'],
  M0005: [15, 'Overflow'],
  M0007: [20, 'IllegalOperation'],
  M0008: [26, 'NamespaceNotFound'],
  M0009: [27, 'IndexNotFound'],
  M000A: [28, 'PathNotViable'],
  M000F: [48, 'NamespaceExists'],
  M000N: [67, 'CannotCreateIndex'],
  M000P: [72, 'InvalidOptions'],
  M000Q: [73, 'InvalidNamespace'],
  M000R: [85, 'IndexOptionsConflict'],
  M000S: [86, 'IndexKeySpecsConflict'],
  M000U: [115, 'CommandNotSupported'],
  M001C: [11000, 'DuplicateKey'],
  M0088: [40415, 'Location40415'],
  M007U: [40324, 'Location40324'],
  M00CO: [121, 'DocumentValidationFailure'],
  M00F1: [112, 'WriteConflict'],
  '23505': [11000, 'DuplicateKey'],
  '23P01': [11000, 'DuplicateKey'],
  '40001': [112, 'WriteConflict'],
  '40P01': [112, 'WriteConflict'],
  '0A000': [115, 'CommandNotSupported'],
};
const INTERNAL = [1, 'InternalError'] as const;

/** An error reply. */
export class CommandError extends Error {
  readonly code: number;
  readonly codeName: string;
  readonly labels: readonly string[];

  constructor(code: number, codeName: string, message: string, labels: readonly string[] = []) {
    super(message);
    this.code = code;
    this.codeName = codeName;
    this.labels = labels;
  }

  answer(): Document {
    const { code, codeName, message, labels } = this;
    return { ok: 0, errmsg: message, code, codeName, ...(labels.length > 0 && { errorLabels: labels }) };
  }
}

/** Maps an error of the engine to a MongoDB error. An unknown SQLSTATE becomes an internal error that contains it. */
export function commandError(error: unknown, inTransaction: boolean): CommandError {
  if (error instanceof CommandError) return error;
  const state = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = error instanceof Error ? error.message : String(error);
  const [code, name] = CODES[state] ?? INTERNAL;
  const text = code === INTERNAL[0] ? `${state}: ${message}` : message;
  return new CommandError(code, name, text, inTransaction && code === 112 ? ['TransientTransactionError'] : []);
}

/** In bulk writes the engine packs a SQLSTATE into a number: six bits per character, the first one lowest. */
function unpackSqlState(packed: number): string {
  return [0, 6, 12, 18, 24].map((shift) => String.fromCharCode(((packed >> shift) & 63) + 48)).join('');
}

export function writeErrorCode(packed: number): number {
  return (CODES[unpackSqlState(packed)] ?? [packed])[0];
}
