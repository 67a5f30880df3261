import { SvcError } from '../errors.ts';

/** Something that an engine lacks, and what needs it. */
export interface UnsupportedUse {
  /** A clause with the engine: `Abacus cannot enforce a unique field`. */
  readonly what: string;
  readonly subjects: readonly string[];
  readonly why?: string | undefined;
  readonly next: readonly string[];
}

/** One `not_supported` with what all of these say. */
export function combinedUnsupported(errors: readonly SvcError[]): SvcError {
  const [first, ...others] = errors;
  if (first && others.length === 0) return first;
  const uses = errors.flatMap(({ message, why, next, details }): readonly UnsupportedUse[] =>
    Array.isArray(details.unsupported)
      ? (details.unsupported as readonly UnsupportedUse[])
      : [{ what: message.replace(/\.$/, ''), subjects: [], why, next }],
  );
  return unsupportedError(uses, first?.details);
}

export function unsupportedError(uses: readonly UnsupportedUse[], details: SvcError['details'] = {}): SvcError {
  const grouped = new Map<string, UnsupportedUse>();
  for (const use of uses) {
    const subjects = new Set([...(grouped.get(use.what)?.subjects ?? []), ...use.subjects]);
    grouped.set(use.what, { ...use, subjects: [...subjects] });
  }
  const all = [...grouped.values()];
  const sentences = all.map(
    ({ what, subjects }) => `${[what, ...(subjects.length > 0 ? [subjects.join(', ')] : [])].join(': ')}.`,
  );
  return new SvcError('not_supported', sentences.join(' '), {
    why: [...new Set(all.flatMap(({ why }) => why ?? []))].join(' '),
    next: [...new Set(all.flatMap(({ next }) => next))],
    details: { ...details, unsupported: all },
  });
}
