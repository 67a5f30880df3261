import type { RunObserver } from '../../../../core/dialect.ts';
import { isRaw } from '../../sql/statement.ts';
import { isBefore, type Traits, type Version } from '../variant.ts';
import type { MysqlSegment, MysqlStatement, MysqlStep } from './statement.ts';

const VARIANT = "elt(1 + (ord(random_bytes(1)) & 3),'8','9','a','b')";
const VERSIONED = `insert(insert(hex(random_bytes(16)),13,1,'4'),17,1,${VARIANT})`;

/** A random UUID, version 4. The server's own uuid() is predictable: a time, a counter and the server's address. */
export const RANDOM_UUID = `(lower(insert(insert(insert(insert(${VERSIONED},9,0,'-'),14,0,'-'),19,0,'-'),24,0,'-')))`;

/** The default on a server without `random_bytes`. */
const SERVER_UUID = '(uuid())';

/** Whether `autoGenerate` writes this default, or wrote it on an older server. */
export function isGeneratedUuid(expression: string): boolean {
  const plain = normalizeSpelling(expression);
  return plain === normalizeSpelling(RANDOM_UUID) || plain === normalizeSpelling(SERVER_UUID);
}

/** Removes the differences between the spellings of the servers. */
const normalizeSpelling = (expression: string): string =>
  expression
    .replace(/_\w+'/g, "'")
    .replace(/[()\s]/g, '')
    .toLowerCase()
    .replace(/^lcase/, 'lower');

interface Server {
  readonly traits: Traits;
  readonly version: Version;
}

/** Replaces SQL that the server's version does not support; the version is unknown when statements are compiled. */
export function statementsFor({
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
export function segmentsFor(
  server: Server,
  segments: readonly MysqlSegment[],
  observer?: RunObserver,
): readonly MysqlSegment[] {
  const adapt = statementsFor(server);
  return segments.map((segment, index) => {
    const statements = adapt(segment.statements);
    const [first] = statements;
    if (first && first !== segment.statements[0]) observer?.onSent(index, first.text);
    return { ...segment, statements };
  });
}
