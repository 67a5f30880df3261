import type { RunObserver } from '../../../../core/dialect.ts';
import { isRaw } from '../../sql/statement.ts';
import { RANDOM_UUID, SERVER_UUID } from '../compile/generated-uuid.ts';
import type { MysqlSegment, MysqlStatement, MysqlStep } from '../compile/step.ts';
import { isBefore, type Traits, type Version } from '../variant.ts';

interface Server {
  readonly traits: Traits;
  readonly version: Version;
}

/** Replaces SQL that the server's version does not support; the version is unknown when statements are compiled. */
export function adaptStatements({
  traits,
  version,
}: Server): (statements: readonly MysqlStatement[]) => readonly MysqlStatement[] {
  if (!isBefore(version, traits.randomBytesSince)) return (statements) => statements;
  const replaced = (text: string): string => text.replaceAll(RANDOM_UUID, SERVER_UUID);
  return (statements) =>
    statements.map((statement) =>
      isRaw(statement) || !JSON.stringify(statement.run).includes(RANDOM_UUID)
        ? statement
        : {
            ...statement,
            text: replaced(statement.text),
            run: JSON.parse(replaced(JSON.stringify(statement.run))) as MysqlStep,
          },
    );
}

/** The same for the segments of a run. Reports each replaced statement. */
export function adaptSegments(
  server: Server,
  segments: readonly MysqlSegment[],
  observer?: RunObserver,
): readonly MysqlSegment[] {
  const adapt = adaptStatements(server);
  return segments.map((segment, index) => {
    const statements = adapt(segment.statements);
    const [first] = statements;
    if (first && first !== segment.statements[0]) observer?.onSent(index, first.text);
    return { ...segment, statements };
  });
}
