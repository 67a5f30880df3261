import type { Statement } from '../../../core/dialect.ts';
import { isSvcError } from '../../../core/errors.ts';
import type { Exec } from '../../sql/session.ts';
import { completed, following, isQuestion } from './complete.ts';
import { numberOf } from './errors.ts';
import { changesOf } from './foresee.ts';
import { alterText } from './resolve.ts';
import type { Traits } from './traits.ts';

/** As they will be sent, of tables and columns that are before them as they are now; others as they were planned. */
export async function textsOf(exec: Exec, traits: Traits, statements: readonly Statement[]): Promise<string[]> {
  const texts = statements.map(({ text }) => text);
  for (const [table, changes] of changesOf(statements).changes) {
    for (const { statement, ask, untouched } of changes) {
      if (!untouched || !isQuestion(ask)) continue;
      try {
        const clauses = await completed(exec, traits, ask);
        const sent = [clauses, ...following(traits, ask, clauses).map((clause) => [clause])];
        texts[statement] = sent.map((one) => alterText(table, one)).join('; ');
      } catch (error) {
        // What the catalog refuses the run itself tells.
        if (!isSvcError(error) && numberOf(error) === undefined) throw error;
      }
    }
  }
  return texts;
}
