import type { Node, ParseError } from 'jsonc-parser';
import { type ErrorCode, SvcError } from '../core/errors.ts';
import type { Path } from '../core/schema/shape.ts';

/** A file of JSON as it was read: places in it are looked up when an error needs one. */
export interface JsonText {
  /** As it is printed. */
  readonly file: string;
  readonly text: string;
  /** Code of a refusal of this file. */
  readonly code: ErrorCode;
}

/**
 * The value of a JSON text, plain JSON and nothing more: comments, trailing commas and names that stand twice in one
 * object are refused with line and column.
 */
export async function parseJsonText({ file, text, code }: JsonText): Promise<unknown> {
  const bare = withoutMark(text);
  let value: unknown;
  try {
    value = JSON.parse(bare);
  } catch (error) {
    throw await notJson({ file, text: bare, code }, error);
  }
  if (countNames(value) !== countWrittenNames(bare)) throw await nameTwice({ file, text: bare, code });
  return value;
}

/** The value of a text that `parseJsonText` has accepted before. */
export function plainJson(text: string): unknown {
  return JSON.parse(withoutMark(text));
}

/** `file:line:column` of the value at a path, or of what is nearest to it where the path leads nowhere. */
export async function placeOf({ file, text }: JsonText, path: Path): Promise<string> {
  const { parseTree, findNodeAtLocation } = await import('jsonc-parser');
  const bare = withoutMark(text);
  const root = parseTree(bare);
  for (let length = path.length; root && length > 0; length--) {
    const found = findNodeAtLocation(root, [...path.slice(0, length)]);
    if (!found) continue;
    // A whole path is shown where its name stands; a part of one where the object begins that lacks the rest.
    const name = found.parent?.type === 'property' ? found.parent.children?.[0] : undefined;
    return at(file, bare, (name ?? found).offset);
  }
  return root ? at(file, bare, root.offset) : file;
}

function withoutMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

function at(file: string, text: string, offset: number): string {
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf('\n') + 1;
  return `${file}:${before.split('\n').length}:${offset - lineStart + 1}`;
}

function countNames(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const members = Object.values(value);
  let count = Array.isArray(value) ? 0 : members.length;
  for (const member of members) count += countNames(member);
  return count;
}

const STRING = /"(?:[^"\\]|\\.)*"\s*(:?)/g;

/** Names as they stand in the text, those included that JSON.parse lets a later one replace. */
function countWrittenNames(text: string): number {
  let count = 0;
  for (const match of text.matchAll(STRING)) if (match[1] === ':') count += 1;
  return count;
}

const PLAIN: Readonly<Record<string, string>> = {
  InvalidSymbol: 'There is a word that JSON does not know.',
  InvalidNumberFormat: 'There is a number that JSON does not know.',
  PropertyNameExpected: 'A name in double quotes is expected.',
  ValueExpected: 'A value is expected.',
  ColonExpected: 'A colon is expected.',
  CommaExpected: 'A comma is expected.',
  CloseBraceExpected: 'A closing } is expected.',
  CloseBracketExpected: 'A closing ] is expected.',
  EndOfFileExpected: 'The file goes on after its value has ended.',
  InvalidCommentToken: 'Comments are not JSON.',
  UnexpectedEndOfComment: 'Comments are not JSON.',
  UnexpectedEndOfString: 'A string does not end.',
  UnexpectedEndOfNumber: 'A number does not end.',
  InvalidUnicode: 'There is an escape that JSON does not know.',
  InvalidEscapeCharacter: 'There is an escape that JSON does not know.',
  InvalidCharacter: 'There is a character that JSON does not allow here.',
};

async function notJson({ file, text, code }: JsonText, cause: unknown): Promise<SvcError> {
  const { parseTree, printParseErrorCode } = await import('jsonc-parser');
  const errors: ParseError[] = [];
  parseTree(text, errors, { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false });
  const first = errors.sort((a, b) => a.offset - b.offset)[0];
  const words = cause instanceof Error ? cause.message : String(cause);
  const trailing = first && /,\s*$/.test(text.slice(0, first.offset)) && /^[}\]]/.test(text.slice(first.offset));
  return new SvcError(code, `${file} is not JSON.`, {
    why: trailing
      ? 'JSON has no comma before a closing bracket.'
      : first
        ? (PLAIN[printParseErrorCode(first.error)] ?? words)
        : words,
    next: ['Mend the file at that place.'],
    where: first ? at(file, text, first.offset) : file,
    cause,
  });
}

async function nameTwice({ file, text, code }: JsonText): Promise<SvcError> {
  const { parseTree } = await import('jsonc-parser');
  const root = parseTree(text);
  const twice = root && secondName(root);
  return new SvcError(code, `${file} has the name ${JSON.stringify(twice?.value ?? '')} twice in one object.`, {
    why: 'JSON would keep the second one and lose the first without a word.',
    next: ['Remove one of the two.'],
    where: twice ? at(file, text, twice.offset) : file,
  });
}

function secondName(node: Node): Node | undefined {
  const seen = new Set<unknown>();
  for (const child of node.children ?? []) {
    const name = node.type === 'object' ? child.children?.[0] : undefined;
    if (name && seen.has(name.value)) return name;
    seen.add(name?.value);
    const deeper = secondName(child);
    if (deeper) return deeper;
  }
  return undefined;
}
