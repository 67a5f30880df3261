import { SvcError } from '../errors.ts';
import { nearest } from '../nearest.ts';
import type { Migration } from './migration.ts';
import type { Target } from './target.ts';

/** Throws `name_unknown` for a raw statement of a dialect that the project does not know: it would never run anywhere. */
export function assertKnownDialects({ dialect, dialects }: Target, migration: Migration): void {
  if (!dialects) return;
  const known = [...new Set([dialect.name, ...dialects])];
  for (const direction of ['up', 'down'] as const) {
    for (const [index, operation] of migration[direction].entries()) {
      if (operation.type !== 'raw' || known.includes(operation.dialect)) continue;
      const near = nearest(operation.dialect, known);
      throw new SvcError(
        'name_unknown',
        `No dialect is named "${operation.dialect}", so the raw statement would never run.`,
        {
          why: `Known: ${known.sort().join(', ')}.`,
          state: 'Nothing was changed.',
          next: [
            near
              ? `Did you mean "${near}"? Correct the name in "${migration.tag}".`
              : `Correct the name in "${migration.tag}", or add the plugin that registers the dialect to svc.config.`,
          ],
          where: `${migration.tag} ${direction}[${index}]`,
          details: { tag: migration.tag },
        },
      );
    }
  }
}
