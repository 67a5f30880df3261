import type { Segment, Statement, Underway } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import { isUsers } from '../../sql/text.ts';
import type { Traits } from './traits.ts';
import { isBefore, type Version } from './version.ts';

const VARIANT = "elt(1 + (ord(random_bytes(1)) & 3),'8','9','a','b')";
const VERSIONED = `insert(insert(hex(random_bytes(16)),13,1,'4'),17,1,${VARIANT})`;

/** A random UUID, version 4. The server's own uuid() is made of the time, a counter and its address: one tells the next. */
export const RANDOM = `(lower(insert(insert(insert(insert(${VERSIONED},9,0,'-'),14,0,'-'),19,0,'-'),24,0,'-')))`;

/** What a server without random bytes has in its place. */
const OLDER = '(uuid())';

/** Whether a default is one that `autoGenerate` stands for, or stood for. */
export function isGenerated(expression: string): boolean {
  const plain = bare(expression);
  return plain === bare(RANDOM) || plain === bare(OLDER);
}

/** As no server spells it. */
const bare = (expression: string): string =>
  expression
    .replace(/_\w+'/g, "'")
    .replace(/[()\s]/g, '')
    .toLowerCase()
    .replace(/^lcase/, 'lower');

interface Server {
  readonly traits: Traits;
  readonly version: Version;
}

/** Statements as this server knows them. Compiling does not know its version. */
export function known({ traits, version }: Server): (statements: readonly Statement[]) => readonly Statement[] {
  if (!isBefore(version, traits.randomSince)) return (statements) => statements;
  const older = (text: string): string => text.replaceAll(RANDOM, OLDER);
  return (statements) =>
    statements.map((statement) =>
      isUsers(statement.run) || !JSON.stringify(statement.run).includes(RANDOM)
        ? statement
        : {
            ...statement,
            text: older(statement.text),
            run: JSON.parse(older(JSON.stringify(statement.run))) as Json,
          },
    );
}

/** The segments of a run as this server knows them; what becomes of a statement by that is told. */
export function knownSegments(server: Server, segments: readonly Segment[], underway?: Underway): readonly Segment[] {
  const of = known(server);
  return segments.map((segment, index) => {
    const statements = of(segment.statements);
    const [first] = statements;
    if (first && first !== segment.statements[0]) underway?.sent(index, first.text);
    return { ...segment, statements };
  });
}
